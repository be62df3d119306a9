package source

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// npy is an array as NumPy's save writes it, format version 1.0.
func npy(descr, shape string, values []byte) []byte {
	return npyOf(1, fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape), values)
}

func npyOf(version byte, header string, values []byte) []byte {
	for (len(header)+11)%64 != 0 {
		header += " "
	}
	header += "\n"
	out := append([]byte("\x93NUMPY"), version, 0)
	if version == 1 {
		out = binary.LittleEndian.AppendUint16(out, uint16(len(header)))
	} else {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(header)))
	}
	return append(append(out, header...), values...)
}

// npz is an archive as NumPy's savez (or savez_compressed) writes it.
func npz(t testing.TB, method uint16, members ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		w, err := z.CreateHeader(&zip.FileHeader{Name: members[i].(string) + ".npy", Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(members[i+1].([]byte)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func npyFloats(values ...float32) (out []byte) {
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

func doubles(values ...float64) (out []byte) {
	for _, v := range values {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	}
	return out
}

// tiny is a data block of 2x1 pictures.
func tiny(path string) config.Data {
	d := pictureBlock(path)
	d.Height, d.Width = 2, 1
	return d
}

// TestPicturesOfNPZ: types, names, versions, compressed or not, in files and in folders.
func TestPicturesOfNPZ(t *testing.T) {
	dir := t.TempDir()
	put(t, npz(t, zip.Store, "x", npy("|u1", "(2, 2, 1)", []byte{1, 2, 3, 4}), "y", npy("<i8", "(2,)", []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), "other", []byte("?")), dir, "a.npz")
	put(t, npz(t, zip.Deflate, "images", npy("<f4", "(2, 2, 1, 1)", npyFloats(0, 0.5, 1, 0.2)), "labels", npy("|u1", "(2, 1)", []byte{0, 1})), dir, "b", "anything.npz")
	put(t, npz(t, zip.Deflate, "images", npyOf(2, `{"shape": (1, 2, 1, 3), "descr": "<f8", "fortran_order": False}`, doubles(1, 0, 0, 0, 0, 1)), "y", npy("<i2", "(1,)", []byte{1, 0})), dir, "c.npz")
	clients, _, err := readPictures(tiny(dir))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		name   string
		pixels []byte
		labels []int
	}{
		{"a", []byte{1, 2, 3, 4}, []int{1, 0}},
		{"b", []byte{0, 128, 255, 51}, []int{0, 1}},
		{"c", []byte{76, 29}, []int{1}},
	} {
		c := clients[i]
		if c.Name != want.name || !bytes.Equal(c.Images.Pixels, want.pixels) || !slices.Equal(c.Images.Labels, want.labels) || c.Len() != len(want.labels) {
			t.Errorf("%+v: %+v", want, c.Images)
		}
	}
	for _, path := range []string{"a.npz", "b", filepath.Join("b", "anything.npz")} {
		if one, _, err := Pictures(tiny(""), filepath.Join(dir, path), "me"); err != nil || one.Len() != 2 || one.Name != "me" {
			t.Errorf("%s: %+v, %v", path, one, err)
		}
	}
	d := tiny(dir)
	d.Channels = 3
	if clients, _, err = readPictures(d); err != nil || !bytes.Equal(clients[0].Images.Pixels[:6], []byte{1, 1, 1, 2, 2, 2}) || !bytes.Equal(clients[2].Images.Pixels, []byte{255, 0, 0, 0, 0, 255}) {
		t.Error(clients, err)
	}
}

// TestFaultsOfNPZ: each is told, with what would do, and no memory is taken for a claim.
func TestFaultsOfNPZ(t *testing.T) {
	goodX, goodY := npy("|u1", "(2, 2, 1)", []byte{1, 2, 3, 4}), npy("|u1", "(2,)", []byte{0, 1})
	header := func(text string) []byte {
		return npz(t, zip.Store, "x", npyOf(1, text, []byte{1, 2, 3, 4}), "y", goodY)
	}
	spoiled := npz(t, zip.Store, "x", goodX, "y", goodY)
	spoiled[bytes.Index(spoiled, []byte{1, 2, 3, 4})]++
	for words, raw := range map[string][]byte{
		"is no npz file":                                             []byte("PK\x03\x04 hello"),
		"0 arrays named x or images":                                 npz(t, zip.Store, "y", goodY),
		"2 arrays named x or images":                                 npz(t, zip.Store, "x", goodX, "images", goodX, "y", goodY),
		"0 arrays named y or labels":                                 npz(t, zip.Store, "x", goodX),
		"2 pictures and 1 labels":                                    npz(t, zip.Store, "x", goodX, "y", npy("|u1", "(1,)", []byte{0})),
		"picture 1 has label 2; allowed: 0 to 1":                     npz(t, zip.Store, "x", goodX, "y", npy("|u1", "(2,)", []byte{0, 2})),
		"picture 0 has label -1":                                     npz(t, zip.Store, "x", goodX, "y", npy("|i1", "(2,)", []byte{255, 0})),
		"picture 1 has label 9223372036854775807":                    npz(t, zip.Store, "x", goodX, "y", npy("<u8", "(2,)", append(make([]byte, 8), bytes.Repeat([]byte{255}, 8)...))),
		"labels have the type \"<f4\"":                               npz(t, zip.Store, "x", goodX, "y", npy("<f4", "(2,)", npyFloats(0, 1))),
		"labels have the type \"|u1\" and the shape [1 2]":           npz(t, zip.Store, "x", goodX, "y", npy("|u1", "(1, 2)", []byte{0, 1})),
		"picture 1 has the value 1.5 in row 0, column 0":             npz(t, zip.Store, "x", npy("<f4", "(2, 2, 1)", npyFloats(0, 1, 1.5, 0)), "y", goodY),
		"picture 0 has the value NaN in row 1, column 0":             npz(t, zip.Store, "x", npy("<f8", "(2, 2, 1)", doubles(0, math.NaN(), 1, 0)), "y", goodY),
		"pictures have the type \"<i4\"":                             npz(t, zip.Store, "x", npy("<i4", "(2, 2, 1)", make([]byte, 16)), "y", goodY),
		"pictures have the shape [2 2]":                              npz(t, zip.Store, "x", npy("|u1", "(2, 2)", []byte{1, 2, 3, 4}), "y", goodY),
		"pictures have the shape [2 1 1 2]":                          npz(t, zip.Store, "x", npy("|u1", "(2, 1, 1, 2)", []byte{1, 2, 3, 4}), "y", goodY),
		"every picture has 0 by 2 pixels":                            npz(t, zip.Store, "x", npy("|u1", "(2, 2, 0)", nil), "y", goodY),
		"takes 68719476864 bytes with its header, but there are 132": npz(t, zip.Store, "x", npy("|u1", "(1048576, 256, 256)", []byte{1, 2, 3, 4}), "y", goodY),
		"allowed: at most 68719476736 bytes":                         npz(t, zip.Store, "x", npy("<f8", "(2147483647, 2147483647, 2147483647)", nil), "y", goodY),
		"the shape has 99999999999999999999":                         npz(t, zip.Store, "x", npy("|u1", "(99999999999999999999,)", nil), "y", goodY),
		"takes 132 bytes with its header, but there are 133":         npz(t, zip.Store, "x", append(bytes.Clone(goodX), 9), "y", goodY),
		"is no array: it begins with":                                npz(t, zip.Store, "x", []byte("hello hello"), "y", goodY),
		"is no array: unexpected EOF":                                npz(t, zip.Store, "x", []byte("he"), "y", goodY),
		"has a header of 4294967295 bytes":                           npz(t, zip.Store, "x", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), "y", goodY),
		"must lie in C order":                                        header("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2, 1), }"),
		"values of the type \">u2\"":                                 header("{'descr': '>u2', 'fortran_order': False, 'shape': (2, 1, 1), }"),
		"values of the type \"|O\"":                                  header("{'descr': '|O', 'fortran_order': False, 'shape': (2, 1, 1), }"),
		"the key \"more\" is not known":                              header("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 1), 'more': 1}"),
		"a key was expected, each once":                              header("{'descr': '|u1', 'descr': '|u1', 'shape': (2, 2, 1), }"),
		"descr, fortran_order and shape were expected":               header("{'descr': '|u1', 'shape': (2, 2, 1), }"),
		"and nothing after them":                                     header("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 1), } x"),
		"a dictionary was expected":                                  header("['descr']"),
		"a comma was expected in the shape":                          header("{'descr': '|u1', 'fortran_order': False, 'shape': (2 2 1), }"),
		"a comma was expected before":                                header("{'descr': '|u1' 'fortran_order': False, 'shape': (2, 2, 1), }"),
		"at most 4 of them":                                          header("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1), }"),
		"checksum error":                                             spoiled,
		"holds no picture":                                           npz(t, zip.Store, "x", npy("|u1", "(0, 2, 1)", nil), "y", npy("|u1", "(0,)", nil)),
	} {
		path := put(t, raw, t.TempDir(), "north.npz")
		_, _, err := readPictures(tiny(filepath.Dir(path)))
		if err == nil || !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
	// Labels and pictures are looked at both, and of many faults some are listed.
	many := put(t, npz(t, zip.Deflate, "x", npy("|u1", "(50, 2, 2)", make([]byte, 200))[:130], "y", npy("|u1", "(50,)", bytes.Repeat([]byte{9}, 50))), t.TempDir(), "north.npz")
	_, _, err := readPictures(tiny(filepath.Dir(many)))
	if err == nil || strings.Count(err.Error(), "has label 9") != 10 || !strings.Contains(err.Error(), "and 41 faults more") {
		t.Error(err)
	}
}

func idx(values []byte, dims ...int) []byte {
	out := []byte{0, 0, 8, byte(len(dims))}
	for _, d := range dims {
		out = binary.BigEndian.AppendUint32(out, uint32(d))
	}
	return append(out, values...)
}

func zipped(raw []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(raw)
	w.Close()
	return b.Bytes()
}

// TestPicturesOfIDX: pairs in one folder or in one each, compressed or not, and by a
// pattern.
func TestPicturesOfIDX(t *testing.T) {
	dir := t.TempDir()
	put(t, idx([]byte{1, 2, 3, 4}, 2, 2, 1), dir, "north-images-idx3-ubyte")
	put(t, zipped(idx([]byte{1, 0}, 2)), dir, "north-labels-idx1-ubyte.gz")
	put(t, zipped(idx([]byte{255, 0, 0, 9, 9, 9}, 1, 2, 1, 3)), dir, "south", "train-images.idx4-ubyte.gz")
	put(t, idx([]byte{1}, 1), dir, "south", "train-labels.idx1-ubyte")
	clients, _, err := readPictures(tiny(dir))
	if err != nil {
		t.Fatal(err)
	}
	north, south := clients[0], clients[1]
	if north.Name != "north" || !bytes.Equal(north.Images.Pixels, []byte{1, 2, 3, 4}) || !slices.Equal(north.Images.Labels, []int{1, 0}) ||
		south.Name != "south" || !bytes.Equal(south.Images.Pixels, []byte{76, 9}) || !slices.Equal(south.Images.Labels, []int{1}) {
		t.Errorf("%+v, %+v", north, south)
	}
	if clients, _, err = readPictures(tiny(filepath.Join(dir, "n*"))); err != nil || len(clients) != 1 || clients[0].Name != "north" {
		t.Error(clients, err)
	}
	if one, _, err := Pictures(tiny(""), filepath.Join(dir, "north-images-idx3-ubyte"), "north"); err != nil || one.Len() != 2 {
		t.Error(one, err)
	}
	for name, files := range map[string]map[string][]byte{
		"the file of their labels is not beside it":   {"a-images-idx3-ubyte": idx(nil, 0, 2, 1)},
		"the file of their pictures is not beside it": {"a-labels-idx1-ubyte": idx(nil, 0)},
		"picture 1 has label 2":                       {"a-images-idx3-ubyte": idx([]byte{1, 2, 3, 4}, 2, 2, 1), "a-labels-idx1-ubyte": idx([]byte{0, 2}, 2)},
		"but labels of the shape [1]":                 {"a-images-idx3-ubyte": idx([]byte{1, 2, 3, 4}, 2, 2, 1), "a-labels-idx1-ubyte": idx([]byte{0}, 1)},
		"idx: 3 values, the header says 4":            {"a-images-idx3-ubyte": idx([]byte{1, 2, 3}, 2, 2, 1), "a-labels-idx1-ubyte": idx([]byte{0, 1}, 2)},
		"a-labels-idx1-ubyte: idx: no header":         {"a-images-idx3-ubyte": idx([]byte{1, 2, 3, 4}, 2, 2, 1), "a-labels-idx1-ubyte": nil},
		"pictures have the shape [4]":                 {"a-images-idx3-ubyte": idx([]byte{1, 2, 3, 4}, 4), "a-labels-idx1-ubyte": idx([]byte{0, 1}, 2)},
		"is a second client \"a\"":                    {"a-images-idx3-ubyte": idx([]byte{1, 2}, 1, 2, 1), "a-labels-idx1-ubyte": idx([]byte{0}, 1), "a.npz": nil},
		"holds 2 idx or npz files and 0 class":        {"a/a.npz": nil, "a/b.npz": nil},
		"holds 1 idx or npz files and 1 class":        {"a/a.npz": nil, "a/cat/a.png": nil},
		"names no client":                             {"images-idx3-ubyte": nil, "labels-idx1-ubyte": nil},
	} {
		dir := t.TempDir()
		for file, raw := range files {
			put(t, raw, dir, file)
		}
		if _, _, err := readPictures(tiny(dir)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPicturesOfRealIDX: MNIST, read as one client's, is MNIST.
func TestPicturesOfRealIDX(t *testing.T) {
	folder := os.Getenv("COTERIE_DATA")
	if folder == "" {
		t.Skip("COTERIE_DATA is not set: see README, real data")
	}
	d := pictureBlock("")
	d.Height, d.Width, d.Classes = 28, 28, nil
	for i := range 10 {
		d.Classes = append(d.Classes, config.Cell(fmt.Sprint(i)))
	}
	c, report, err := Pictures(d, filepath.Join(folder, "mnist", "t10k-images-idx3-ubyte.gz"), "mnist")
	if err != nil {
		t.Fatal(err)
	}
	want, err := data.LoadIDXImages(folder, "mnist", "t10k", 10)
	if err != nil {
		t.Fatal(err)
	}
	if report.Rows != 10000 || !bytes.Equal(c.Images.Pixels, want.Pixels) || !slices.Equal(c.Images.Labels, want.Labels) {
		t.Errorf("%v: pixels or labels differ", report)
	}
}

// FuzzNPZ: whatever the bytes, there is a fault or a store whose lengths agree.
func FuzzNPZ(f *testing.F) {
	goodY := npy("|u1", "(2,)", []byte{0, 1})
	f.Add(npz(f, zip.Store, "x", npy("|u1", "(2, 2, 1)", []byte{1, 2, 3, 4}), "y", goodY))
	f.Add(npz(f, zip.Deflate, "images", npy("<f4", "(2, 2, 1, 1)", npyFloats(0, 0.5, 1, 0.2)), "labels", goodY))
	f.Add(npz(f, zip.Store, "x", npyOf(3, `{"shape": (1, 2, 1, 3), "descr": "<f8", "fortran_order": False}`, doubles(1, 0, 0, 0, 0, 1)), "y", goodY))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := newPictureReader(tiny(""))
		if err != nil {
			t.Fatal(err)
		}
		im, faults := r.store(0), &arrayFaults{path: "fuzz"}
		err = r.readNPZ(bytes.NewReader(raw), int64(len(raw)), faults, func(pixels []byte, label int) error {
			im.Pixels, im.Labels = append(im.Pixels, pixels...), append(im.Labels, label)
			return nil
		})
		if err != nil || len(faults.listed) > 0 {
			return
		}
		if len(im.Pixels) != 2*im.Len() || len(im.Labels) != im.Len() {
			t.Fatalf("%d labels for %d pixels", len(im.Labels), len(im.Pixels))
		}
		for _, l := range im.Labels {
			if l < 0 || l > 1 {
				t.Fatal("a label that is no class", l)
			}
		}
	})
}

// FuzzArrayHeader: what is accepted has a length that follows from its shape.
func FuzzArrayHeader(f *testing.F) {
	f.Add(npy("|u1", "(2, 2, 1)", nil))
	f.Add(npyOf(2, `{"shape": (), "descr": "<f8", "fortran_order": False}`, nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, length, err := readArrayHeader(bytes.NewReader(raw))
		if err != nil {
			return
		}
		values := int64(a.bytes)
		for _, d := range a.shape {
			values *= int64(d)
		}
		if head := length - values; head < 10 || head > int64(len(raw)) || values < 0 || values > mostArray {
			t.Fatalf("%+v: %d bytes", a, length)
		}
	})
}
