package data

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// wrt1 packs pictures of the given writers; picture i has label i and one pixel
// of ink at place i.
func wrt1(writers int, ids ...uint16) []byte {
	raw := binary.LittleEndian.AppendUint32([]byte("WRT1"), uint32(len(ids)))
	raw = binary.LittleEndian.AppendUint32(raw, uint32(writers))
	for _, id := range ids {
		raw = binary.LittleEndian.AppendUint16(raw, id)
	}
	for i := range ids {
		raw = append(raw, byte(i))
	}
	for i := range ids {
		picture := make([]byte, 784)
		picture[i] = 255
		raw = append(raw, picture...)
	}
	return raw
}

func TestReadWRT1(t *testing.T) {
	good := wrt1(2, 0, 0, 1)
	w, err := ReadWRT1(bytes.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	if w.Images.Len() != 3 || w.Classes != 62 || !slices.Equal(w.Writers[0].Index, []int{0, 1}) || w.Images.Pixels[784+1] != 255 || w.Images.Labels[2] != 2 {
		t.Errorf("%+v", w.Writers)
	}
	change := func(at int, b byte) []byte {
		raw := bytes.Clone(good)
		raw[at] = b
		return raw
	}
	for _, c := range []struct {
		name string
		raw  []byte
		what string
	}{
		{"nothing", nil, "header"},
		{"another format", change(0, 'X'), "WRT1"},
		{"no picture", wrt1(0), "0 pictures"},
		{"no writer", wrt1(0, 0), "0 writers"},
		{"more writers than pictures", wrt1(3, 0, 1), "3 writers"},
		{"a writer beyond", wrt1(2, 0, 2), "writer 2"},
		{"writers out of order", wrt1(2, 1, 0), "after writer 1"},
		{"a writer of nothing", wrt1(3, 0, 0, 2), "no picture"},
		{"a label out of range", change(18, 62), "label 62"},
		{"a claim of 4 billion", change(7, 0xff), "pictures; allowed"},
		{"a claim of 65536 more", change(6, 1), "writers"},
		{"a cut list", good[:15], "bytes of writers"},
		{"cut labels", good[:19], "bytes of labels"},
		{"a cut picture", good[:len(good)-1], "bytes of pictures"},
		{"a byte more", append(bytes.Clone(good), 0), "after the 3 pictures"},
	} {
		_, err := ReadWRT1(bytes.NewReader(c.raw))
		wantError(t, c.name, err, "wrt1", c.what)
	}
}

func FuzzReadWRT1(f *testing.F) {
	f.Add(wrt1(2, 0, 0, 1))
	f.Add(wrt1(1, 0))
	f.Fuzz(func(t *testing.T, raw []byte) {
		w, err := ReadWRT1(bytes.NewReader(raw))
		if err != nil {
			return
		}
		total := 0
		for _, one := range w.Writers {
			total += len(one.Index)
		}
		if n := w.Images.Len(); total != n || len(w.Images.Pixels) != 784*n || len(raw) != 12+787*n {
			t.Fatalf("%d pictures of %d writers in %d bytes", n, len(w.Writers), len(raw))
		}
	})
}

func TestLoadUNIPEN(t *testing.T) {
	folder := t.TempDir()
	packed := gz(t, wrt1(2, 0, 0, 1))
	put(t, folder, "unipen-by-writer/unipen62_by_writer.bin.gz", packed)
	_, err := LoadUNIPEN(folder)
	wantError(t, "no table of writers", err, "writers.csv")
	const head = "writer,unipen_set,samples,digits,upper,lower\n"
	put(t, folder, "unipen-by-writer/writers.csv", []byte(head+"0,aga,2,2,0,0\n1,val,1,1,0,0\n"))
	w, err := LoadUNIPEN(folder)
	if err != nil || w.Writers[0].Name != "aga-0" || w.Writers[1].Name != "val-1" {
		t.Fatal(w, err)
	}
	for _, c := range []struct{ name, rows, what string }{
		{"a writer less", "0,aga,2,2,0,0\n", "1 writers"},
		{"a writer more", "0,aga,2,2,0,0\n1,val,1,1,0,0\n2,val,1,1,0,0\n", "line 4: one more"},
		{"another count", "0,aga,2,2,0,0\n1,val,2,1,0,0\n", "line 3, column samples"},
		{"a digit for a letter", "0,aga,2,1,1,0\n1,val,1,1,0,0\n", "line 2, column digits"},
		{"another order", "1,val,1,1,0,0\n0,aga,2,2,0,0\n", "line 2, column writer"},
		{"a short row", "0,aga\n", "line 2"},
	} {
		put(t, folder, "unipen-by-writer/writers.csv", []byte(head+c.rows))
		_, err := LoadUNIPEN(folder)
		wantError(t, c.name, err, "writers.csv", c.what)
	}
	put(t, folder, "unipen-by-writer/unipen62_by_writer.bin.gz", packed[:len(packed)-3])
	_, err = LoadUNIPEN(folder)
	wantError(t, "a cut archive", err, "unipen62_by_writer.bin.gz", "EOF")
}

func TestReadMNISTWriters(t *testing.T) {
	im := &Images{Height: 1, Width: 1, Pixels: []byte{1, 2, 3}, Labels: []int{5, 0, 4}}
	const head = "split,index,label,hsf,writer,nist_class,nist_digit_index\n"
	w, err := ReadMNISTWriters("m.csv", strings.NewReader(head+
		"train,2,4,4,7,34,0\ntrain,0,5,4,7,35,1\ntest,0,9,0,1,39,0\ntrain,1,0,0,30,30,0\n"), im, "train")
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Writers) != 2 || w.Writers[0].Name != "hsf0-30" || !slices.Equal(w.Writers[1].Index, []int{0, 2}) {
		t.Errorf("%+v", w.Writers)
	}
	if w.Report.Rows != 4 || w.Report.Kept != 3 || w.Report.Count("of the other part") != 1 {
		t.Error(&w.Report)
	}
	for _, c := range []struct{ name, rows, what string }{
		{"a picture without writer", "train,0,5,4,7,35,1\n", "picture 1"},
		{"a picture twice", "train,0,5,4,7,35,1\ntrain,0,5,4,7,35,1\n", "line 3, column index"},
		{"a picture beyond", "train,3,5,4,7,35,1\n", "line 2, column index"},
		{"another label", "train,0,4,4,7,35,1\n", "line 2, column label"},
		{"no part", "valid,0,5,4,7,35,1\n", "line 2, column split"},
		{"no partition", "train,0,5,x,7,35,1\n", "line 2, column hsf"},
		{"a negative writer", "train,0,5,4,-7,35,1\n", "line 2, column writer"},
		{"a short row", "train,0,5\n", "line 2: 3 cells"},
	} {
		_, err := ReadMNISTWriters("m.csv", strings.NewReader(head+c.rows), im, "train")
		wantError(t, c.name, err, "m.csv", c.what)
	}
	if _, err := LoadMNISTWriters(t.TempDir(), "t10k"); err == nil || !strings.Contains(err.Error(), "train, test") {
		t.Error(err)
	}
}

func FuzzReadMNISTWriters(f *testing.F) {
	f.Add("split,index,label,hsf,writer\ntrain,0,5,4,7\ntrain,1,0,0,1\ntest,0,1,1,1\n")
	f.Fuzz(func(t *testing.T, body string) {
		im := &Images{Height: 1, Width: 1, Pixels: []byte{1, 2}, Labels: []int{5, 0}}
		w, err := ReadMNISTWriters("m.csv", strings.NewReader(body), im, "train")
		if err != nil {
			return
		}
		if w.Report.Kept != 2 || len(w.Writers) < 1 || len(w.Writers) > 2 {
			t.Fatal(fmt.Sprint(w.Writers), &w.Report)
		}
	})
}

// The counts are those of the data folder's own notes.
func TestRealUNIPEN(t *testing.T) {
	w, err := LoadUNIPEN(realData(t))
	if err != nil {
		t.Fatal(err)
	}
	if w.Images.Len() != 99126 || len(w.Writers) != 244 || w.Classes != 62 {
		t.Errorf("%d pictures of %d writers", w.Images.Len(), len(w.Writers))
	}
	var sizes []int
	for _, one := range w.Writers {
		sizes = append(sizes, len(one.Index))
	}
	slices.Sort(sizes)
	classes := make([]int, 62)
	for _, l := range w.Images.Labels {
		classes[l]++
	}
	digits, upper, lower := 0, 0, 0
	for l, n := range classes {
		switch {
		case l < 10:
			digits += n
		case l < 36:
			upper += n
		default:
			lower += n
		}
	}
	big := 0
	for _, s := range sizes {
		if s >= 50 {
			big++
		}
	}
	if sizes[0] != 20 || sizes[243] != 4885 || big != 211 || digits != 15302 || upper != 26327 || lower != 57497 ||
		slices.Min(classes) != 689 || slices.Max(classes) != 5642 {
		t.Errorf("writers of %d to %d pictures, %d of 50 and more; %d digits, %d upper, %d lower", sizes[0], sizes[243], big, digits, upper, lower)
	}
	f, err := w.Federation(WriterOptions{Seed: 1, HeldOut: 0.1, Rotated: 0.5})
	if err != nil || len(f.Train) != 219 || len(f.Validation) != 25 {
		t.Error(len(f.Train), len(f.Validation), err)
	}
}

func TestRealMNISTWriters(t *testing.T) {
	folder := realData(t)
	for part, want := range map[string]struct{ pictures, writers, least, most int }{
		"train": {60000, 539, 19, 131}, "test": {10000, 297, 8, 130},
	} {
		w, err := LoadMNISTWriters(folder, part)
		if err != nil {
			t.Fatal(err)
		}
		least, most := len(w.Writers[0].Index), 0
		for _, one := range w.Writers {
			least, most = min(least, len(one.Index)), max(most, len(one.Index))
		}
		if w.Images.Len() != want.pictures || len(w.Writers) != want.writers || least != want.least || most != want.most {
			t.Errorf("%s: %d pictures of %d writers, %d to %d each", part, w.Images.Len(), len(w.Writers), least, most)
		}
	}
}
