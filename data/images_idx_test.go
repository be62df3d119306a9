package data

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadIDX(t *testing.T) {
	good := []byte{0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6}
	dims, values, err := readIDX(bytes.NewReader(good), int64(len(good)))
	if err != nil || len(dims) != 2 || dims[1] != 3 || len(values) != 6 || values[5] != 6 {
		t.Fatal(dims, values, err)
	}
	for name, raw := range map[string][]byte{
		"empty":            nil,
		"other type":       {0, 0, 0x0d, 1, 0, 0, 0, 0},
		"no dimension":     {0, 0, 8, 0},
		"five dimensions":  {0, 0, 8, 5},
		"cut header":       good[:10],
		"cut data":         good[:17],
		"data left":        append(bytes.Clone(good), 0),
		"claims too much":  {0, 0, 8, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"claims more than": {0, 0, 8, 1, 0x7f, 0xff, 0xff, 0xff, 1},
	} {
		if _, _, err := readIDX(bytes.NewReader(raw), int64(len(raw))); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func FuzzReadIDX(f *testing.F) {
	f.Add([]byte{0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6})
	f.Fuzz(func(t *testing.T, raw []byte) {
		dims, values, err := readIDX(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return
		}
		n := 1
		for _, d := range dims {
			n *= d
		}
		if n != len(values) {
			t.Fatalf("dimensions %v and %d values", dims, len(values))
		}
	})
}

func TestLoadIDXImages(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, raw []byte) {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		w.Write(raw)
		w.Close()
		if err := os.WriteFile(filepath.Join(dir, "set", name), z.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "set"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("train-images-idx3-ubyte.gz", []byte{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4})
	write("train-labels-idx1-ubyte.gz", []byte{0, 0, 8, 1, 0, 0, 0, 2, 7, 9})
	im, err := LoadIDXImages(dir, "set", "train", 10)
	if err != nil || im.Len() != 2 || im.Width != 2 || im.Labels[1] != 9 {
		t.Fatal(im, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plain"), []byte{0, 0, 8, 1, 0, 0, 0, 1, 7}, 0o644); err != nil {
		t.Fatal(err)
	}
	if dims, values, err := ReadIDXFile(filepath.Join(dir, "plain")); err != nil || dims[0] != 1 || values[0] != 7 {
		t.Error(dims, values, err)
	}
	// A header that lies costs no memory: two gigabytes do not fit into 9 bytes.
	if err := os.WriteFile(filepath.Join(dir, "lie"), []byte{0, 0, 8, 1, 0x7f, 0xff, 0xff, 0xff, 7}, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadIDXFile(filepath.Join(dir, "lie")); err == nil || !strings.Contains(err.Error(), "more than a file of 9 bytes can hold") {
		t.Errorf("a file of 9 bytes that says 2 GB: %v", err)
	}
	if _, err := LoadIDXImages(dir, "set", "train", 9); err == nil {
		t.Error("a label out of range was accepted")
	}
	if _, err := LoadIDXImages(dir, "set", "t10k", 10); err == nil {
		t.Error("a missing file was accepted")
	}
	write("train-labels-idx1-ubyte.gz", []byte{0, 0, 8, 1, 0, 0, 0, 1, 7})
	if _, err := LoadIDXImages(dir, "set", "train", 10); err == nil {
		t.Error("one label for two pictures was accepted")
	}
}

// realData is the folder of real data, or skips the test.
func realData(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("COTERIE_DATA")
	if dir == "" {
		t.Skip("COTERIE_DATA is not set: see README, real data")
	}
	return dir
}

func TestRealMNIST(t *testing.T) {
	for part, n := range map[string]int{"train": 60000, "t10k": 10000} {
		im, err := LoadIDXImages(realData(t), "mnist", part, 10)
		if err != nil {
			t.Fatal(err)
		}
		if im.Len() != n || im.Height != 28 || im.Width != 28 {
			t.Errorf("%s: %d pictures of %dx%d", part, im.Len(), im.Height, im.Width)
		}
	}
}
