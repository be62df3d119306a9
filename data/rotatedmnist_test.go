package data

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// cornered are pictures of 28 by 28, each with a mark at the top left whose value
// tells the picture, and a lighter one to the right of it.
func cornered(n int) *Images {
	im := &Images{Height: 28, Width: 28, Pixels: make([]byte, n*784), Labels: make([]int, n)}
	for i := range n {
		im.Pixels[i*784], im.Pixels[i*784+1] = byte(1+i%200), 240
		im.Labels[i] = i % 10
	}
	return im
}

func TestRotatedSilosTurnByGroup(t *testing.T) {
	train, test := cornered(83), cornered(41)
	f, err := RotatedSilos(train, test, RotatedOptions{Seed: 1, Silos: 8, MaskSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Train) != 8 || f.Classes != 10 || f.Report.Count(leftUneven) != 3+1 {
		t.Fatalf("%d silos; %s", len(f.Train), f.Report)
	}
	// Counter-clockwise, the mark goes down the left side, then to the right.
	corners, beside := []int{0, 27 * 28, 27*28 + 27, 27}, []int{1, 26 * 28, 27*28 + 26, 28 + 27}
	seen := make([]bool, 83)
	for k := range f.Train {
		c := &f.Train[k]
		if c.Len() != 10 || f.Train[k].Held.Len() != 5 || c.Group != k/2 {
			t.Fatalf("silo %d: %d and %d pictures, group %d", k, c.Len(), f.Train[k].Held.Len(), c.Group)
		}
		for _, i := range c.Index {
			if seen[i] {
				t.Errorf("picture %d is there twice", i)
			}
			seen[i] = true
			if p := c.Images.picture(i); p[corners[c.Group]] != byte(1+i%200) || p[beside[c.Group]] != 240 || bytes.Count(p, []byte{0}) != 782 {
				t.Errorf("silo %d of group %d: the mark of picture %d is not at %d", k, c.Group, i, corners[c.Group])
			}
		}
	}
	if train.Pixels[0] != 1 {
		t.Error("the source was changed: the next seed would turn it again")
	}
}

func TestMasksAreTheSilosOwn(t *testing.T) {
	const rate = 0.3
	f, err := RotatedSilos(cornered(4000), cornered(400), RotatedOptions{Seed: 2, Silos: 40, Mask: rate, MaskSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	masks := map[string]bool{}
	patches := 0
	for k := range f.Train {
		covered := func(c *Client, i int) string {
			var b []byte
			for _, v := range c.Images.picture(c.Index[i]) {
				b = append(b, byte(v/white)) // marks are below white
			}
			return string(b)
		}
		mask := covered(&f.Train[k], 0)
		masks[mask] = true
		for i := range f.Train[k].Index {
			if covered(&f.Train[k], i) != mask {
				t.Fatalf("silo %d has two masks", k)
			}
		}
		if covered(f.Train[k].Held, 0) != mask {
			t.Errorf("silo %d: held-out pictures have another mask", k)
		}
		for y := 0; y < 28; y += 2 {
			for x := 0; x < 28; x += 2 {
				sum := mask[y*28+x] + mask[y*28+x+1] + mask[y*28+28+x] + mask[y*28+28+x+1]
				if sum != 0 && sum != 4 {
					t.Fatalf("silo %d: a torn patch at %d, %d", k, y, x)
				}
				patches += int(sum / 4)
			}
		}
	}
	if len(masks) != 40 {
		t.Errorf("%d masks for 40 silos", len(masks))
	}
	// 40*196 places; a binomial count leaves 4.9 standard deviations once in a million.
	n := 40.0 * 196
	if d := math.Abs(float64(patches)-rate*n) / math.Sqrt(n*rate*(1-rate)); d > 4.9 {
		t.Errorf("%d patches, expected %v: %v standard deviations", patches, rate*n, d)
	}
	if d := math.Abs(float64(patches)-(rate+0.05)*n) / math.Sqrt(n*rate*(1-rate)); d < 4.9 {
		t.Error("a rate wrong by 0.05 would not be seen")
	}
}

func TestRotatedSilosRefuse(t *testing.T) {
	for name, o := range map[string]RotatedOptions{
		"6 silos":          {Silos: 6, MaskSize: 2},
		"no silos":         {MaskSize: 2},
		"too many silos":   {Silos: 400, MaskSize: 2},
		"a mask of 2":      {Silos: 4, Mask: 2, MaskSize: 2},
		"NaN":              {Silos: 4, Mask: math.NaN(), MaskSize: 2},
		"patches of 0":     {Silos: 4, Mask: 0.1},
		"patches too wide": {Silos: 4, Mask: 0.1, MaskSize: 29},
	} {
		if _, err := RotatedSilos(cornered(40), cornered(40), o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestRealRotatedMNIST(t *testing.T) {
	d := config.Default("rotated-mnist", "local", "paper").Data
	d.Mask = 0.1
	folder := NewFolder(realData(t))
	f, err := folder.Load(d, 1)
	if err != nil {
		t.Fatal(err)
	}
	for k := range f.Train {
		counts := make([]int, 10)
		for _, i := range f.Train[k].Index {
			counts[f.Train[k].Images.Labels[i]]++
		}
		if f.Train[k].Len() != 1500 || f.Train[k].Held.Len() != 250 || slices.Min(counts) < 90 {
			t.Errorf("%s: %d and %d pictures, by class %v", f.Train[k].Name, f.Train[k].Len(), f.Train[k].Held.Len(), counts)
		}
	}
	if len(f.Train) != 40 || f.Report.Kept != 70000 {
		t.Errorf("%d silos: %s", len(f.Train), f.Report)
	}
	d.TrainLimit = 100
	if f, err = folder.Load(d, 1); err != nil || f.Train[39].Len() != 100 || f.Train[39].Held.Len() != 250 {
		t.Errorf("a limit of 100: %v", err)
	}
	if got := fmt.Sprint(f.Train[0].Group, f.Train[10].Group, f.Train[39].Group); got != "0 1 3" {
		t.Errorf("groups %s", got)
	}
}
