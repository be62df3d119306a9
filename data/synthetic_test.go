package data

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

func defaults() config.Data { return config.Default("synthetic", "ifca", "paper").Data }

func TestPaperFederation(t *testing.T) {
	f := Synthetic(defaults(), 3)
	if len(f.Train) != 100 || len(f.Validation) != 100 || f.Features != 2 {
		t.Fatalf("%d and %d clients, %d features", len(f.Train), len(f.Validation), f.Features)
	}
	groups := map[int]int{}
	for _, c := range f.Train {
		groups[c.Group]++
		if c.Len() != 10 || len(c.X) != 20 {
			t.Fatalf("a client holds %d rows and %d features", c.Len(), len(c.X))
		}
		theta := [][]float64{{5, 6}, {4, -4.5}}[c.Group]
		for i, y := range c.Y {
			x := c.X[2*i : 2*i+2]
			if u := y - theta[0]*x[0] - theta[1]*x[1]; u < -1e-12 || u >= 1+1e-12 {
				t.Fatalf("u = %v is outside [0, 1)", u)
			}
			for _, v := range x {
				if v < -1 || v >= 1 {
					t.Fatalf("x = %v is outside [-1, 1)", v)
				}
			}
		}
	}
	if groups[0] != 50 || groups[1] != 50 {
		t.Errorf("groups of %v", groups)
	}
}

func TestTrainingAndValidationDiffer(t *testing.T) {
	f := Synthetic(defaults(), 3)
	if slices.Equal(f.Train[0].X, f.Validation[0].X) {
		t.Error("a validation client holds a training client's rows")
	}
	again := Synthetic(defaults(), 3)
	if !slices.Equal(f.Train[7].Y, again.Train[7].Y) {
		t.Error("the same seed gave other data")
	}
	if other := Synthetic(defaults(), 4); slices.Equal(f.Train[7].Y, other.Train[7].Y) {
		t.Error("another seed gave the same data")
	}
}

func TestFairnessFederation(t *testing.T) {
	// Section 5.2.1 of paper 003: 800 and 200 users, the second group shifted by 15.
	d := defaults()
	d.Users, d.Shares, d.Shift = 1000, []float64{0.8, 0.2}, []float64{0, 15}
	d.X = config.Distribution{Kind: "normal", Mean: 2, SD: 3}
	f := Synthetic(d, 1)
	counts, sum, square, n := map[int]int{}, 0.0, 0.0, 0.0
	for _, c := range f.Train {
		counts[c.Group]++
		for i := range c.Y {
			theta := f.Truth[c.Group]
			u := c.Y[i] - theta[0]*c.X[2*i] - theta[1]*c.X[2*i+1] - d.Shift[c.Group]
			if u < -1e-9 || u > 1+1e-9 {
				t.Fatalf("u = %v: the shift is not what was asked for", u)
			}
		}
		for _, v := range c.X {
			sum, square, n = sum+v, square+v*v, n+1
		}
	}
	if counts[0] != 800 || counts[1] != 200 {
		t.Errorf("groups of %v", counts)
	}
	// 20,000 values of sd 3: five standard errors of the mean are 0.106.
	if mean := sum / n; math.Abs(mean-2) > 0.106 || math.Abs(math.Sqrt(square/n-mean*mean)-3) > 0.08 {
		t.Errorf("x has mean %v and sd %v", mean, math.Sqrt(square/n-mean*mean))
	}
}

func TestDrawnParameters(t *testing.T) {
	d := defaults()
	d.Groups, d.Dimension = 3, 5
	f := Synthetic(d, 1)
	if len(f.Truth) != 3 || len(f.Truth[0]) != 5 || features(d) != 5 {
		t.Fatalf("truth %v", f.Truth)
	}
	counts := map[int]int{}
	for _, c := range f.Train {
		counts[c.Group]++
	}
	if counts[0] != 34 || counts[1] != 33 || counts[2] != 33 {
		t.Errorf("100 clients in 3 groups: %v", counts)
	}
}

func TestCheckSynthetic(t *testing.T) {
	for name, change := range map[string]func(*config.Data){
		"data.parameters": func(d *config.Data) { d.Parameters = [][]float64{{1, 2}, {3}} },
		"data.groups":     func(d *config.Data) { d.Parameters, d.Groups = [][]float64{{1, 2}}, 2 },
		"data.dimension":  func(d *config.Data) { d.Parameters, d.Dimension = [][]float64{{1, 2}}, 3 },
		"data.shares":     func(d *config.Data) { d.Shares = []float64{0.5, 0.4} },
		"data.shift":      func(d *config.Data) { d.Shift = []float64{1} },
		"data.x.high":     func(d *config.Data) { d.X.High = -2 },
	} {
		run := config.Default("synthetic", "ifca", "paper")
		change(&run.Data)
		faults := Check(run)
		if len(faults) != 1 || faults[0].Path != name {
			t.Errorf("%s: %v", name, faults)
		}
	}
	if faults := Check(config.Default("synthetic", "ifca", "paper")); faults != nil {
		t.Errorf("the defaults: %v", faults)
	}
}
