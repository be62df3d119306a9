package data

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// scan is a grey PNG whose squares of side/32 pixels alternate around a value.
func scan(t *testing.T, side int, grey byte) []byte {
	im := image.NewGray(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			im.SetGray(x, y, color.Gray{Y: grey + byte(x%2)*2})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, im); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func putScan(t *testing.T, folder, maker, patient, picture string, raw []byte) {
	put(t, folder, fmt.Sprintf("adni/adni_data2/%s/ADNI_016_S_%s_PT_AV45_Coreg,_Avg_2010_44_S92_%s.png", maker, patient, picture), raw)
}

func TestADNI(t *testing.T) {
	folder := t.TempDir()
	labels := ""
	for i := range 8 {
		labels += fmt.Sprintf("%04d,I%d,1.%d\n", i%4, i, i)
		putScan(t, folder, []string{"SIEMENS", "CPS"}[i/6], fmt.Sprintf("%04d", i%4), fmt.Sprintf("I%d", i), scan(t, 64, byte(10*i)))
	}
	put(t, folder, "adni/labels_2.txt", []byte(labels))
	putScan(t, folder, "SIEMENS", "0099", "I99", scan(t, 64, 1))
	putScan(t, folder, "Toaster", "0001", "I1", scan(t, 64, 1))
	put(t, folder, "adni/adni_data2/SIEMENS/.DS_Store", nil)
	put(t, folder, "adni/adni_data2/HERMES/notes.txt", nil)
	a, err := LoadADNI(folder)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(a.Silos) != "[CPS SIEMENS]" || a.Images.Len() != 8 || a.Report.Rows != 9 || a.Report.Kept != 8 {
		t.Fatalf("%v: %s", a.Silos, &a.Report)
	}
	for _, reason := range []string{leftNoMaker, leftNoTarget, leftTinySilo} {
		if a.Report.Count(reason) != 1 {
			t.Errorf("%s: %d", reason, a.Report.Count(reason))
		}
	}
	if a.Report.Count(leftNoPicture) != 2 {
		t.Errorf("%s", &a.Report)
	}
	// Squares of 2 by 2 hold 60, 62, 60, 62; CPS comes first and begins with scan 6.
	if p := a.Images.picture(0); p[0] != 61 || a.Images.Targets[0] != 1.6 || len(p) != 1024 {
		t.Errorf("picture 0 begins with %d and has the target %v", p[0], a.Images.Targets[0])
	}
	f, err := NewFolder(folder).Load(config.Default("adni", "local", "paper").Data, 1)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for k := range f.Train {
		for _, i := range slices.Concat(f.Train[k].Index, f.Train[k].Held.Index) {
			if seen[i] {
				t.Errorf("picture %d is there twice", i)
			}
			seen[i] = true
		}
	}
	if len(seen) != 8 || f.Train[1].Len()+f.Train[1].Held.Len() != 6 || f.Classes != 0 {
		t.Errorf("%v: %d pictures; %d and %d", f.Names(), len(seen), f.Train[1].Len(), f.Train[1].Held.Len())
	}
}

func TestADNIRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		labels string
		scan   []byte
		says   []string
	}{
		"a word for a value": {"0001,I1,high\n", scan(t, 32, 1), []string{"labels_2.txt, line 1", "value"}},
		"two cells":          {"0001,1.2\n", scan(t, 32, 1), []string{"labels_2.txt, line 1", "2 cells"}},
		"out of range":       {"0001,I1,1.5\n0001,I2,11\n", scan(t, 32, 1), []string{"labels_2.txt, line 2", "11"}},
		"two values":         {"0001,I1,1.5\n0001,I1,1.6\n", scan(t, 32, 1), []string{"labels_2.txt, line 2", "two values"}},
		"no labels":          {"", scan(t, 32, 1), []string{"labels_2.txt", "no labels"}},
		"a size of 33":       {"0001,I1,1.5\n", scan(t, 33, 1), []string{"I1.png", "33 by 33"}},
		"not a PNG":          {"0001,I1,1.5\n", []byte("x"), []string{"I1.png"}},
		"nobody's label":     {"0002,I1,1.5\n", scan(t, 32, 1), []string{"no silo is left", leftNoTarget}},
	} {
		folder := t.TempDir()
		put(t, folder, "adni/labels_2.txt", []byte(c.labels))
		putScan(t, folder, "GEMS", "0001", "I1", c.scan)
		_, err := LoadADNI(folder)
		wantError(t, name, err, c.says...)
	}
	_, err := LoadADNI(t.TempDir())
	wantError(t, "no files", err, "labels_2.txt", "docs/data.md")
}
