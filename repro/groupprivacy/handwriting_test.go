package groupprivacy

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/repro/lab/labtest"
)

func TestMain(m *testing.M) { os.Exit(cudatest.Main(m)) }

func TestOneNoiseOfTheHandwritingStudy(t *testing.T) {
	var paper handwritingFigures
	if err := lab.Expected("handwriting.json", &paper); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scale string
		set   []string
		want  []float64
		all   int
		left  int
	}{
		{lab.Full, nil, []float64{0, 1, 3, 10, 15}, 9, 0},
		{lab.Quick, nil, []float64{0, 10}, 9, 0},
		{lab.Quick, []string{"seed=3", "privacy.noise_multiplier=3"}, []float64{0, 3}, 2, 1},
		{lab.Quick, []string{"privacy.noise_multiplier=0"}, []float64{0}, 1, 0},
	} {
		l := &lab.Lab{Options: lab.Options{Scale: c.scale, Set: c.set}}
		got, all, err := handwritingNoise(l, paper)
		if err != nil || !slices.Equal(got, c.want) || len(all) != c.all || len(l.Set) != c.left {
			t.Errorf("%+v: %v, %v left, %v", c, got, l.Set, err)
		}
	}
	l := &lab.Lab{Options: lab.Options{Scale: lab.Quick, Set: []string{"privacy.noise_multiplier=much"}}}
	if _, _, err := handwritingNoise(l, paper); err == nil {
		t.Error("a noise that is no number was accepted")
	}
}

func fullStudy(t *testing.T, scale string, seeds int, set ...string) handwritingStudy {
	t.Helper()
	h, err := newHandwritingStudy(&lab.Lab{Options: lab.Options{Scale: scale, Seeds: seeds, Set: set}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestHandwritingCells: full scale is 100 rounds or more of 10 clients for both losses and
// the ceilings, a seed after another; the small network's cells are those of quick scale.
func TestHandwritingCells(t *testing.T) {
	full, runs, err := fullStudy(t, lab.Full, 2).cells()
	if err != nil {
		t.Fatal(err)
	}
	if n := 2 * (2*(1+2*5) + 1 + 2*9 + 2); len(full) != n {
		t.Errorf("%d cells, want %d", len(full), n)
	}
	for i, k := range full {
		run := runs[k]
		a := run.Algorithm
		if (k.Seed == 1) != (i < len(full)/2) || run.Seed != k.Seed || a.Rounds != k.Rounds || k.Changed != "" || a.Stop.Return != "last" {
			t.Errorf("cell %d, %v: %+v", i, k, a)
		}
		if k.Task == ceiling {
			if run.Data.Rotated != 0 || run.Privacy.Protects != "nothing" || a.Kind != "central" {
				t.Errorf("%v: %+v", k, run)
			}
			continue
		}
		if a.Rounds < 100 && k.Task != strict || a.ClientsPerRound != 10 || k.Clients != 10 || a.Local.Loss != k.Loss || run.Data.Rotated != 0.5 || run.Privacy.NoiseMultiplier != k.Nu || (run.Privacy.Protects == "update") != (k.Nu > 0) || a.Stop.ValidationClients != 0 {
			t.Errorf("%v: %+v, %+v", k, a, run.Privacy)
		}
	}
	quick, _, err := fullStudy(t, lab.Quick, 1).cells()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range quick {
		if small := k.Set == SmallHandwriting.Name; small != slices.Contains(full, k) || small == (k.Changed == "quick") {
			t.Errorf("%v (%q) at quick scale", k, k.Changed)
		}
	}
	changed, _, err := fullStudy(t, lab.Full, 1, "algorithm.rounds=7").cells()
	if err != nil || changed[0].Rounds != 7 || changed[0].Changed != "algorithm.rounds=7" {
		t.Errorf("%+v, %v", changed[0], err)
	}
}

// handMade is a book in which noise costs so much of 0.8, by nu, in every seed.
func handMade(t *testing.T, seeds int, costs map[float64]float64) study.Study {
	t.Helper()
	h := fullStudy(t, lab.Full, seeds)
	keys, _, err := h.cells()
	if err != nil {
		t.Fatal(err)
	}
	finished := map[writing]writtenRecord{}
	for _, k := range keys {
		a := event.Number(0.8 - costs[k.Nu] + 0.01*float64(k.Seed%3))
		if k.Task == ceiling {
			a += 0.1
		}
		finished[k] = writtenRecord{Key: k, Value: written{Accuracy: a, Curve: []judged{{2 * k.Rounds / 3, 0.6}, {k.Rounds, 0.5}}}}
	}
	return h.study(finished, keys, 1206590)
}

// TestHandwritingClaimsCanFail: what noise costs is judged by its interval over seeds, up to
// nu 3 and from 10 on; one seed is not judged.
func TestHandwritingClaimsCanFail(t *testing.T) {
	verdicts := func(s study.Study) map[string]study.Verdict {
		out := map[string]study.Verdict{}
		for _, r := range s.Rows {
			if r.Metric == "accuracy lost to noise" && strings.Contains(r.Section, "UNIPEN, trained with cross") {
				out[r.Label] = r.Verdict
			}
		}
		return out
	}
	as := verdicts(handMade(t, 3, map[float64]float64{1: 0.001, 3: 0.015, 10: 0.1, 15: 0.2}))
	for _, nu := range []string{"nu 1", "nu 3", "nu 10", "nu 15"} {
		if as[nu] != study.Agrees {
			t.Errorf("as the paper has it, %s: %v", nu, as[nu])
		}
	}
	other := verdicts(handMade(t, 3, map[float64]float64{1: 0.001, 3: 0.05, 10: 0.02, 15: 0.2}))
	if other["nu 3"] != study.Differs || other["nu 10"] != study.Differs || other["nu 15"] != study.Agrees {
		t.Errorf("otherwise: %v", other)
	}
	if one := verdicts(handMade(t, 1, map[float64]float64{3: 0.5})); one["nu 3"] != study.Incomparable {
		t.Errorf("one seed: %v", one)
	}
	s := handMade(t, 3, nil)
	below, curves := 0, 0
	for _, r := range s.Rows {
		if r.Metric == "below the ceiling" && *r.Measured > 0.099 && *r.Measured < 0.101 && strings.HasSuffix(r.Note, "of the rounds the validation loss fell by 0.1") {
			below++
		}
	}
	for _, c := range s.Charts {
		withCeiling := c.Series[len(c.Series)-1].Name == ceilingName
		if strings.HasSuffix(c.Title, "loss by round") && len(c.Series) >= 5 && len(c.Series[0].Points) == 2 && withCeiling != strings.Contains(c.Title, "rmse") {
			curves++
		}
	}
	if below != 6 || curves != 6 {
		t.Errorf("%d rows below the ceiling, %d charts of curves", below, curves)
	}
}

// TestCommittedHandwriting: what came with the program are cells of full scale without
// changed settings, each of a commit and a day.
func TestCommittedHandwriting(t *testing.T) {
	text, err := rows.ReadFile("rows/handwriting.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	asked, _, err := fullStudy(t, lab.Full, 10).cells()
	if err != nil {
		t.Fatal(err)
	}
	for k, r := range labtest.Committed[writing, written](t, text) {
		if !slices.Contains(asked, k) || !(r.Value.Accuracy > 0 && r.Value.Accuracy <= 1) || len(r.Value.Curve) > 0 && r.Value.Curve[len(r.Value.Curve)-1].Round != k.Rounds {
			t.Errorf("%+v of %s, %s", k, r.Version, r.Date)
		}
	}
}

// TestHandwritingOnADevice: a study of pictures on a device; its cells name it, and the page
// does.
func TestHandwritingOnADevice(t *testing.T) {
	o := labtest.Options(t, lab.Smoke)
	if o.Data == "" {
		t.Skip("COTERIE_DATA is not set: see README, real data")
	}
	cudatest.Use(t)
	o.Device = "cuda"
	s, err := handwriting.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(filepath.Join(o.Out, "handwriting.jsonl"))
	if n := bytes.Count(lines, []byte("\n")); err != nil || n != 3 || bytes.Count(lines, []byte(`"kernel":"cuda `)) != n || bytes.Count(lines, []byte(`"devices":[{"asked":"cuda","name":"`)) != n {
		t.Errorf("%d lines, %v:\n%s", n, err, lines)
	}
	if n := bytes.Count(lines, []byte(`"curve":[{"round":`)); n != 3 {
		t.Errorf("%d cells have curves", n)
	}
	// The three are told apart from those that came with the program, which another device or
	// a processor made.
	own := slices.DeleteFunc(slices.Clone(s.Devices), func(line string) bool {
		return strings.Contains(line, "NVIDIA H200") && !cudatest.OnDevice() || strings.Contains(line, "the processor")
	})
	if len(own) != 1 || !strings.HasPrefix(own[0], "3 cells: ") {
		t.Errorf("%q", s.Devices)
	}
}

// TestWhyAccuracyIsLost: what differs from the paper has a reason that goes by the interval,
// and what agrees has none.
func TestWhyAccuracyIsLost(t *testing.T) {
	paper := map[float64]float64{0: 0.8, 3: 0.8, 10: 0.6}
	cells := func(accuracies ...float64) map[uint64]written {
		out := map[uint64]written{}
		for i, a := range accuracies {
			out[uint64(i+1)] = written{Accuracy: event.Number(a)}
		}
		return out
	}
	base := cells(0.9, 0.9, 0.9)
	for name, v := range map[string]struct {
		set  HandwritingSet
		nu   float64
		with map[uint64]written
		why  string
	}{
		"agrees":                    {HandwritingSets[0], 3, cells(0.899, 0.898, 0.9), ""},
		"falls as the paper's":      {HandwritingSets[0], 10, cells(0.78, 0.79, 0.8), ""},
		"too few seeds":             {HandwritingSets[0], 3, cells(0.9, 0.9, 0.85), "one loses 0.0 points, another 5.0"},
		"ten classes":               {HandwritingSets[1], 10, cells(0.899, 0.898, 0.9), "ten classes"},
		"62 classes, and no fall":   {HandwritingSets[0], 10, cells(0.899, 0.898, 0.9), "No reason is known"},
		"ten classes, little noise": {HandwritingSets[1], 3, cells(0.7, 0.71, 0.7), "No reason is known"},
	} {
		rows := writtenRows("table", v.set.Name, "rmse", v.nu, lab.MeanAndDeviation(accuracies(v.with)), base, v.with, paper)
		if why := rows[1].Why; (why == "") != (v.why == "") || !strings.Contains(why, v.why) {
			t.Errorf("%s: %q, want %q (%v)", name, why, v.why, rows[1].Verdict)
		}
	}
}
