package data

import (
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// TestPaidLeavesRowsAlone: whoever pays for moments scales; the loader must not.
func TestPaidLeavesRowsAlone(t *testing.T) {
	s := &Silos{Features: 2, All: []Client{{Name: "a", Rows: Rows{Features: 2, X: []float64{1, 2, 3, 4, 5, 6, 7, 8}, Y: []float64{0, 1, 0, 1}}}}}
	o := SiloOptions{TestShare: 0.25, Standardise: Unscaled}
	plain, err := s.Federation(o)
	if err != nil {
		t.Fatal(err)
	}
	o.Standardise, o.Centre, o.Scale = ByPaid, []float64{4, 4}, []float64{8, 2}
	paid, err := s.Federation(o)
	if err != nil {
		t.Fatal(err)
	}
	rows := paid.Train[0].Rows
	if !slices.Equal(rows.X, plain.Train[0].X) || len(paid.NotCovered) != 0 {
		t.Errorf("%v, not covered %v", rows.X, paid.NotCovered)
	}
	scaled := rows.Standardised(o.Centre, o.Scale)
	for i, x := range rows.X {
		if want := (x - 4) / o.Scale[i%2]; scaled.X[i] != want {
			t.Errorf("value %d became %v, want %v", i, scaled.X[i], want)
		}
	}
	if !slices.Equal(rows.X, plain.Train[0].X) {
		t.Error("Standardised changed the rows that it copies")
	}
	o.Scale[1] = 0
	if _, err := s.Federation(o); err == nil {
		t.Error("a range without width was accepted")
	}
}

func TestPaidNeedsRanges(t *testing.T) {
	run := config.Default("school", "mr-mtl", "sound")
	run.Data.Standardise = "paid"
	if faults := Check(run); faults != nil {
		t.Error(faults)
	}
	if centre, scale := PublicRange(run.Data); len(centre) != schoolFeatures || len(scale) != schoolFeatures {
		t.Errorf("School has the ranges %v and %v", centre, scale)
	}
	for kind, path := range map[string]string{"vehicle": "data.centre", "rotated-mnist": "data.standardise", "cifar10-silos": "data.standardise", "adni": "data.standardise"} {
		run := config.Default(kind, "mr-mtl", "sound")
		run.Data.Standardise = "paid"
		if faults := Check(run); faults == nil || !strings.Contains(faults.Error(), path) {
			t.Errorf("%s: %v, want a fault at %s", kind, faults, path)
		}
	}
}
