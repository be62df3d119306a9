package data

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// cifarBatch is pictures in the official binary form: all red is r, and so on.
func cifarBatch(labels ...byte) []byte {
	var b []byte
	for _, l := range labels {
		b = append(b, l)
		for c := range 3 {
			b = append(b, bytes.Repeat([]byte{l + byte(10*(c+1))}, cifarPixels)...)
		}
	}
	return b
}

func putBatches(t *testing.T, folder string) {
	for i := 1; i <= 5; i++ {
		put(t, folder, fmt.Sprintf("cifar10/cifar-10-batches-bin/data_batch_%d.bin", i), cifarBatch(byte(i), 9))
	}
	put(t, folder, "cifar10/cifar-10-batches-bin/test_batch.bin", cifarBatch(3))
}

func TestCIFARBatches(t *testing.T) {
	folder := t.TempDir()
	putBatches(t, folder)
	train, test, report, err := LoadCIFAR(folder)
	if err != nil {
		t.Fatal(err)
	}
	if train.Len() != 10 || test.Len() != 1 || report.Rows != 11 || len(report.Notes) != 0 {
		t.Fatalf("%d and %d pictures; %s", train.Len(), test.Len(), &report)
	}
	if p := train.picture(2); !bytes.Equal(p[:4], []byte{12, 22, 32, 12}) || train.Labels[2] != 2 {
		t.Errorf("picture 2 (label %d) begins with %v", train.Labels[2], p[:4])
	}
	put(t, folder, "cifar10/cifar-10-batches-bin/data_batch_3.bin", cifarBatch(1, 10))
	_, _, _, err = LoadCIFAR(folder)
	wantError(t, "label 10", err, "data_batch_3.bin, picture 1", "label 10")
	put(t, folder, "cifar10/cifar-10-batches-bin/data_batch_3.bin", cifarBatch(1, 1)[:4000])
	_, _, _, err = LoadCIFAR(folder)
	wantError(t, "a cut batch", err, "data_batch_3.bin", "cut within picture 1")
	put(t, folder, "cifar10/cifar-10-batches-bin/data_batch_3.bin", nil)
	_, _, _, err = LoadCIFAR(folder)
	wantError(t, "an empty batch", err, "data_batch_3.bin", "picture 0")
}

// strip is a PNG of pictures one below another, each of one colour.
func strip(t *testing.T, width int, pictures ...color.RGBA) []byte {
	im := image.NewRGBA(image.Rect(0, 0, width, 32*len(pictures)))
	for y := range 32 * len(pictures) {
		for x := range width {
			im.Set(x, y, pictures[y/32])
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, im); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCIFARPart(t *testing.T) {
	red, blue := color.RGBA{200, 1, 2, 255}, color.RGBA{3, 4, 250, 255}
	labels := "file,row,original_index,label\n"
	for name, c := range map[string]struct {
		rows  string
		strip []byte
		says  []string // none: it is right
	}{
		"right":             {"cifar10_train_0.png,1,1,6\ncifar10_train_0.png,0,0,2\ncifar10_test_0.png,1,0,9\n", strip(t, 32, red, blue), nil},
		"row out of range":  {"cifar10_train_0.png,2,1,6\n", strip(t, 32, red, blue), []string{"line 2", "row", "2 is out of range"}},
		"label 10":          {"cifar10_train_0.png,1,1,10\n", strip(t, 32, red, blue), []string{"line 2", "label"}},
		"a path":            {"../secret.png,1,1,1\n", strip(t, 32, red, blue), []string{"line 2", "file"}},
		"a narrow picture":  {"cifar10_train_0.png,0,0,1\n", strip(t, 31, red), []string{"cifar10_train_0.png", "31 by 32"}},
		"not a PNG":         {"cifar10_train_0.png,0,0,1\n", []byte("GIF"), []string{"cifar10_train_0.png"}},
		"a missing picture": {"cifar10_train_1.png,0,0,1\n", strip(t, 32, red), []string{"cifar10_train_1.png", "docs/data.md"}},
		"no test part":      {"cifar10_train_0.png,0,0,1\n", strip(t, 32, red), []string{"0 to test"}},
	} {
		folder := t.TempDir()
		put(t, folder, "cifar10/cifar10_labels.csv.gz", gz(t, []byte(labels+c.rows)))
		put(t, folder, "cifar10/cifar10_train_0.png", c.strip)
		put(t, folder, "cifar10/cifar10_test_0.png", c.strip)
		train, test, _, err := LoadCIFAR(folder)
		if len(c.says) > 0 {
			wantError(t, name, err, c.says...)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(train.picture(0)[:3], []byte{3, 4, 250}) || !bytes.Equal(train.picture(1)[:3], []byte{200, 1, 2}) ||
			!slices.Equal(train.Labels, []int{6, 2}) || !bytes.Equal(test.picture(0)[3069:], []byte{3, 4, 250}) {
			t.Errorf("labels %v, first pixels %v and %v", train.Labels, train.picture(0)[:3], train.picture(1)[:3])
		}
	}
}

// classPictures has n pictures of every class.
func classPictures(n int) *Images {
	im := newCIFAR()
	im.Pixels = make([]byte, 10*n*cifarValues)
	for i := range 10 * n {
		im.Labels = append(im.Labels, i%10)
	}
	return im
}

func TestCIFARSilosHaveClassesOfTheirOwn(t *testing.T) {
	train, test := classPictures(300), classPictures(75)
	f, err := CIFARSilos(train, test, LoadReport{}, 1, 30, 5, 0)
	if err != nil {
		t.Fatal(err)
	}
	perClass, seen, total := make([]int, 10), map[int]bool{}, 0
	for k := range f.Train {
		own, held := map[int]bool{}, map[int]bool{}
		for _, i := range f.Train[k].Index {
			own[train.Labels[i]] = true
			seen[i] = true
		}
		for _, i := range f.Train[k].Held.Index {
			held[test.Labels[i]] = true
		}
		if len(own) != 5 || len(held) != 5 {
			t.Errorf("%s trains on %d classes and holds out %d", f.Train[k].Name, len(own), len(held))
		}
		for c := range own {
			perClass[c]++
			if !held[c] {
				t.Errorf("%s has no held-out picture of class %d", f.Train[k].Name, c)
			}
		}
		total += f.Train[k].Len()
		if ratio := float64(f.Train[k].Len()) / 100; ratio < 0.75 || ratio > 1.25 {
			t.Errorf("%s has %d pictures; parts of 0.4 to 0.6 allow 80 to 120, about", f.Train[k].Name, f.Train[k].Len())
		}
	}
	if total != 3000 || len(seen) != 3000 || slices.Min(perClass) != 15 || slices.Max(perClass) != 15 {
		t.Errorf("%d pictures, %d different, silos of every class %v", total, len(seen), perClass)
	}
	limited, err := CIFARSilos(train, test, LoadReport{}, 1, 30, 5, 40)
	if err != nil {
		t.Fatal(err)
	}
	classes := map[int]bool{}
	for _, i := range limited.Train[0].Index {
		classes[train.Labels[i]] = true
	}
	if limited.Train[0].Len() != 40 || len(classes) != 5 || limited.Report.Count(leftOverLimit) != 3000-30*40 {
		t.Errorf("limited to 40: %d pictures of %d classes; %s", limited.Train[0].Len(), len(classes), limited.Report)
	}
	for _, bad := range [][2]int{{30, 0}, {30, 11}, {7, 3}, {0, 5}} {
		if _, err := CIFARSilos(train, test, LoadReport{}, 1, bad[0], bad[1], 0); err == nil {
			t.Errorf("%d silos of %d classes were accepted", bad[0], bad[1])
		}
	}
}

func TestRealCIFAR(t *testing.T) {
	files := NewFolder(realData(t))
	f, err := files.Load(config.Default("cifar10-silos", "local", "paper").Data, 1)
	if err != nil {
		t.Fatal(err)
	}
	least, most := 1<<30, 0
	for k := range f.Train {
		least, most = min(least, f.Train[k].Len()), max(most, f.Train[k].Len())
	}
	// The paper's silos have 1515 to 1839 of 50,000; the stored part is 0.4 of it.
	if len(f.Train) != 30 || least < 560 || most > 780 || f.Report.Kept != 25000 {
		t.Errorf("%d silos of %d to %d pictures: %s", len(f.Train), least, most, f.Report)
	}
	if !strings.Contains(strings.Join(f.Report.Notes, " "), "a part of CIFAR-10") {
		t.Errorf("notes: %v", f.Report.Notes)
	}
	f, err = files.Load(config.Default("cifar10", "central", "sound").Data, 1)
	if err != nil {
		t.Fatal(err)
	}
	// examples/cifar10-private.yaml declares this size.
	if c := &f.Train[0]; c.Len() != 20000 || c.Held.Len() != 5000 {
		t.Errorf("%d to train, %d to test; %s", c.Len(), c.Held.Len(), f.Report)
	}
}
