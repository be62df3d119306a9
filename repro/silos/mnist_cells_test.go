package silos

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/repro/lab/labtest"
	"github.com/coterie-fl/coterie/sim"
)

// turnedKeys are those of a scale, but for seeds.
func turnedKeys(scale string) (keys []turned) {
	l := &lab.Lab{Options: lab.Options{Scale: scale}}
	f := figure16At(l)
	for _, mask := range f.masks {
		for _, c := range f.contenders(mask) {
			for _, run := range c.settings {
				keys = append(keys, turnedOf(l, run))
			}
		}
	}
	return keys
}

// TestTurnedKeys: no two runs of figure 1.6 have one key, at whatever scale.
func TestTurnedKeys(t *testing.T) {
	seen := map[turned]bool{}
	for scale, want := range map[string]int{lab.Smoke: 2, lab.Quick: 24, lab.Full: 30} {
		keys := turnedKeys(scale)
		for _, k := range keys {
			if seen[k] {
				t.Errorf("%s: %v is there twice", scale, k)
			}
			seen[k] = true
		}
		if len(keys) != want {
			t.Errorf("%s: %d runs a seed, want %d", scale, len(keys), want)
		}
	}
}

// TestCommittedTurned: what came with the program are cells of full scale without changed
// settings, each of a commit and a day, and judged to the end.
func TestCommittedTurned(t *testing.T) {
	text, err := rows.ReadFile("rows/" + rotatedFile)
	if err != nil {
		t.Fatal(err)
	}
	asked := turnedKeys(lab.Full)
	for k, r := range labtest.Committed[turned, cell](t, text) {
		seed := k.Seed
		k.Seed = 0
		if !slices.Contains(asked, k) || seed == 0 || seed > uint64(rotatedMNIST.Seeds[lab.Full]) {
			t.Errorf("%v of seed %d is no cell of full scale", k, seed)
		}
		if c := r.Value; !(c.Figure > 0 && c.Figure <= 1) || c.Silos != k.Silos || c.Rounds[len(c.Rounds)-1] != k.Rounds || c.Curve[len(c.Curve)-1] != c.Figure {
			t.Errorf("%v of %s, %s: %+v", k, r.Version, r.Date, c)
		}
	}
}

// TestTurnedCellsOutOfTime: without time for a cell that did not come with the program the
// study ends as an interruption, which says how far it is.
func TestTurnedCellsOutOfTime(t *testing.T) {
	o := labtest.Options(t, lab.Smoke)
	if o.Data == "" {
		t.Skip("COTERIE_DATA is not set: see README, real data")
	}
	o.For = time.Nanosecond
	if _, err := rotatedMNIST.Run(t.Context(), o); !errors.Is(err, sim.ErrInterrupted) || !strings.Contains(err.Error(), "0 of 2 cells") || !strings.Contains(err.Error(), "goes on") {
		t.Error(err)
	}
}

// TestShortened: of a curve the rounds of judgements are left, and five digits.
func TestShortened(t *testing.T) {
	c := cell{Figure: 0.1234567, Rounds: []int{1, 2, 3, 4, 5}, Curve: []event.Number{0.9, 0.1, 0.1, 0.222222222, 0.1234567}}
	var run config.Run
	run.Algorithm.Stop.Every = 2
	got := shortened(c, run)
	if got.Figure != 0.12346 || !slices.Equal(got.Rounds, []int{2, 4, 5}) || !slices.Equal(got.Curve, []event.Number{0.1, 0.22222, 0.12346}) {
		t.Errorf("%+v", got)
	}
}
