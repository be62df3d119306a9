package source

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// picturesAt is a reading of pictures as pictureBlock describes them.
func picturesAt(path string, labelled bool) PictureReading {
	return PictureReading{Path: path, Shape: data.Shape{Height: 4, Width: 4, Channels: 1, Classes: 2}, Classes: []string{"cat", "dog"}, Labelled: labelled}
}

// collected is all that a reading gives.
type collected struct {
	pixels  []byte
	labels  []int
	names   []string
	clients []string // by batch
	sizes   []int    // by batch
}

func collect(t *testing.T, p PictureReading) (*collected, error) {
	t.Helper()
	c := &collected{}
	err := p.Each(t.Context(), func(b *PictureBatch) error {
		if n := len(b.Names); n == 0 || n != b.Images.Len() || len(b.Images.Pixels) != n*b.Images.Height*b.Images.Width*b.Images.Depth() {
			t.Errorf("a batch of %d names, %d labels and %d bytes", n, b.Images.Len(), len(b.Images.Pixels))
		}
		c.pixels, c.labels = append(c.pixels, b.Images.Pixels...), append(c.labels, b.Images.Labels...)
		c.names, c.clients, c.sizes = append(c.names, b.Names...), append(c.clients, b.Client), append(c.sizes, len(b.Names))
		return nil
	})
	return c, err
}

// TestEachPictureIsThatOfTraining: pixels, labels and order of every client are those that
// training reads, in class folders and in archives.
func TestEachPictureIsThatOfTraining(t *testing.T) {
	dir := twoClients(t)
	many := make([]byte, 16*600)
	for i := range many {
		many[i] = byte(i * i / 7)
	}
	put(t, idx(many, 600, 2, 8), dir, "west-images-idx3-ubyte")
	put(t, idx(bytes.Repeat([]byte{0, 1, 1}, 200), 600), dir, "west-labels-idx1-ubyte")
	put(t, npz(t, zip.Deflate, "x", npy("|u1", "(600, 2, 8)", many), "y", npy("|u1", "(600,)", bytes.Repeat([]byte{1, 0}, 300))), dir, "zoo", "all.npz")
	trained, _, err := readPictures(pictureBlock(dir))
	if err != nil {
		t.Fatal(err)
	}
	var want collected
	for _, c := range trained {
		want.pixels, want.labels = append(want.pixels, c.Images.Pixels...), append(want.labels, c.Images.Labels...)
	}
	p := picturesAt(dir, true)
	p.Several = true
	got, err := collect(t, p)
	if err != nil || !bytes.Equal(got.pixels, want.pixels) || !slices.Equal(got.labels, want.labels) {
		t.Errorf("pictures of batches are not those of training (%v)", err)
	}
	if names := slices.Compact(slices.Clone(got.clients)); !slices.Equal(names, []string{"north", "south", "west", "zoo"}) {
		t.Errorf("clients %q", names)
	}
	if !slices.Equal(got.sizes, []int{21, 3, 256, 256, 88, 256, 256, 88}) {
		t.Errorf("batches of %d", got.sizes)
	}
	if got.names[0] != filepath.Join(dir, "north", "cat", "00.png") || got.names[24] != "0" || got.names[623] != "599" || got.names[624] != "0" {
		t.Errorf("names %q, %q to %q, %q", got.names[0], got.names[24], got.names[623], got.names[624])
	}
	// One client's, named or not; a folder of class folders is no folder of clients.
	for i, place := range []string{"north", "south", "west-images-idx3-ubyte", filepath.Join("zoo", "all.npz"), "zoo"} {
		for _, client := range []string{"", "me"} {
			p := picturesAt(filepath.Join(dir, place), true)
			p.Client, p.Several = client, place != "zoo"
			got, err := collect(t, p)
			if own := trained[min(i, 3)].Images; err != nil || !bytes.Equal(got.pixels, own.Pixels) || !slices.Equal(got.labels, own.Labels) || got.clients[0] != client {
				t.Errorf("%s of %q: %q (%v)", place, client, got.clients, err)
			}
		}
		// And where nobody asks for labels the same pixels without them.
		got, err := collect(t, picturesAt(filepath.Join(dir, place), false))
		if own := trained[min(i, 3)].Images; err != nil || !bytes.Equal(got.pixels, own.Pixels) || slices.Max(got.labels) != 0 {
			t.Errorf("%s without labels: %v", place, err)
		}
	}
}

// TestLoosePictures: what need not be there where nobody asks for labels.
func TestLoosePictures(t *testing.T) {
	dir := t.TempDir()
	put(t, pngOf(t, plain(4, 4, color.Gray{2})), dir, "b.png")
	put(t, jpegOf(t, plain(8, 8, color.Gray{3})), dir, "c")
	put(t, pngOf(t, plain(4, 4, color.Gray{1})), dir, "a batch", "z")
	put(t, nil, dir, ".hidden")
	got, err := collect(t, picturesAt(dir, false))
	if err != nil || !slices.Equal(got.names, []string{filepath.Join(dir, "a batch", "z"), filepath.Join(dir, "b.png"), filepath.Join(dir, "c")}) || got.pixels[0] != 1 || got.pixels[47] != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, path := range []string{
		put(t, npz(t, zip.Store, "x", npy("|u1", "(1, 4, 4)", make([]byte, 16))), t.TempDir(), "new.npz"),
		put(t, npz(t, zip.Store, "x", npy("|u1", "(1, 4, 4)", make([]byte, 16)), "y", []byte("no labels")), t.TempDir(), "new.npz"),
		put(t, idx(make([]byte, 16), 1, 4, 4), t.TempDir(), "images-idx3-ubyte"),
	} {
		for _, path := range []string{path, filepath.Dir(path)} {
			if got, err := collect(t, picturesAt(path, false)); err != nil || !slices.Equal(got.names, []string{"0"}) {
				t.Errorf("%s: %+v, %v", path, got, err)
			}
			if _, err := collect(t, picturesAt(path, true)); err == nil {
				t.Errorf("%s: labels that are not there", path)
			}
		}
	}
}

// TestFaultsOfEachPicture: all are listed by path, wherever they are; and who takes
// pictures may end it.
func TestFaultsOfEachPicture(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		put(t, pngOf(t, plain(4, 4, color.Gray{uint8(i)})), dir, "many", fmt.Sprintf("%03d.png", i))
	}
	bad := []string{put(t, []byte("hello"), dir, "many", "000.png"), put(t, []byte("\x89PNG\r\n\x1a\n"), dir, "many", "299.png")}
	_, err := collect(t, picturesAt(filepath.Join(dir, "many"), false))
	if err == nil || !strings.Contains(err.Error(), "2 faults") || !strings.Contains(err.Error(), bad[0]+": is neither") || !strings.Contains(err.Error(), bad[1]+": is broken") {
		t.Error(err)
	}
	for words, lay := range map[string]func(dir string){
		"is a folder too deep":                      func(dir string) { put(t, nil, dir, "north", "cat", "1.png") },
		"holds no picture":                          func(dir string) { put(t, nil, dir, ".hidden") },
		"holds 2 idx or npz files and 0":            func(dir string) { put(t, nil, dir, "a.npz"); put(t, nil, dir, "b.npz") },
		"holds 1 idx or npz files and 1":            func(dir string) { put(t, nil, dir, "a.npz"); put(t, nil, dir, "b.png") },
		"idx: 15 values, the header says 16":        func(dir string) { put(t, idx(make([]byte, 15), 1, 4, 4), dir, "a-images-idx3-ubyte") },
		"bytes after the 16 values":                 func(dir string) { put(t, idx(make([]byte, 17), 1, 4, 4), dir, "a-images-idx3-ubyte") },
		"a-images-idx3-ubyte: idx: no header":       func(dir string) { put(t, nil, dir, "a-images-idx3-ubyte") },
		"picture 0 has the value 2 in row 0":        func(dir string) { put(t, npz(t, zip.Store, "x", npy("<f4", "(1, 1, 1)", npyFloats(2))), dir, "a.npz") },
		"no such file or directory":                 func(dir string) { os.Symlink("nowhere", filepath.Join(dir, "a.png")) },
		"is a folder too deep: pictures lie in the": func(dir string) { os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755) },
	} {
		dir := filepath.Join(t.TempDir(), "x")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		lay(dir)
		if _, err := collect(t, picturesAt(dir, false)); err == nil || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", words, err)
		}
	}
	good := put(t, idx(make([]byte, 16*600), 600, 4, 4), t.TempDir(), "a-images-idx3-ubyte")
	enough, calls := errors.New("enough"), 0
	if err := picturesAt(good, false).Each(t.Context(), func(*PictureBatch) error { calls++; return enough }); err != enough || calls != 1 {
		t.Errorf("%d batches, %v", calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls = 0
	if err := picturesAt(good, false).Each(ctx, func(*PictureBatch) error { calls++; cancel(); return nil }); !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("%d batches, %v", calls, err)
	}
	p := picturesAt(good, false)
	p.Shape.Height = mostPublicSide + 1
	var faults config.Faults
	if err := p.Each(t.Context(), func(*PictureBatch) error { return nil }); !errors.As(err, &faults) {
		t.Errorf("a size that no run file may have: %v", err)
	}
}
