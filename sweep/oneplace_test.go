package sweep

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// declared is training in one place on a few rows that are declared to be as many as
// MNIST's pictures: 10 times 118 steps with batches of 512.
func declared(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.csv")
	rows := "y,a\n"
	for i := range 100 {
		rows += fmt.Sprintf("%d,%v\n", i%2, float64(i)/20)
	}
	if err := os.WriteFile(path, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	return `
data: {kind: table, source: {path: ` + path + `}, target: y, task: yes/no, features: [{name: a, type: number, range: [0, 5]}], test_share: 0.2}
algorithm: {kind: central, mode: sound, rounds: 10, local: {batch: 512, steps: 118}}
privacy: {protects: example, relation: add-remove, public_size: 60000, epsilon: 3, delta: 1.0e-5}
`
}

// TestGridsOfThePapers is the noise of the runs of paper 001's grids (section 3.7; the
// table of dp/account's TestNoiseOfAGridsRuns): the number of runs follows from the grid.
func TestGridsOfThePapers(t *testing.T) {
	k5 := "algorithm.local.step: [0.00316, 0.0316, 0.316, 3.16, 31.6]"
	k9 := "algorithm.local.step: [0.00316, 0.01, 0.0316, 0.1, 0.316, 1, 3.16, 10, 31.6]"
	gamma := "privacy.clipping.quantile: [0.1, 0.3, 0.5, 0.7, 0.9]"
	for name, c := range map[string]struct {
		rule, grid, epsilon string
		runs                int
		noise               float64
	}{
		"Online, k = 5":         {"online", k5, "3", 5, 1.210},
		"Online, k = 9":         {"online", k9, "9", 9, 0.815},
		"AdamWOSM":              {"adam-wosm", "privacy.clip: [0.01, 0.1, 1, 10, 100]", "5", 5, 0.917},
		"FixedThreshold, k = 5": {"fixed", k5 + ", privacy.clip: [0.01, 0.1, 1, 10, 100]", "3", 25, 2.307},
		"FixedThreshold, k = 9": {"fixed", k9 + ", privacy.clip: [0.01, 0.0316, 0.1, 0.316, 1, 3.16, 10, 31.6, 100]", "1", 81, 10.70},
		"FixedQuantile, k = 5":  {"quantile", k5 + ", " + gamma, "7", 25, 1.251},
		"FixedQuantile, k = 9":  {"quantile", k9 + ", " + gamma, "4", 45, 2.388},
	} {
		p := loaded(t, declared(t), "run: run.yaml\nseeds: 3\ngrid: {"+c.grid+"}\ntuning: {charge: grid}\n",
			"privacy.clipping.rule="+c.rule, "privacy.epsilon="+c.epsilon)
		o := options(t, nil)
		shared, err := p.share(t.Context(), o)
		if err != nil || shared != c.runs {
			t.Errorf("%s: %d runs share the target, want %d (%v)", name, shared, c.runs, err)
			continue
		}
		runs, err := o.wallets(t.Context(), p.sharing(shared)[c.runs/2].Run)
		if err != nil {
			t.Fatal(err)
		}
		if got := runs.wallets[0].plan.Noise; len(runs.wallets) != 1 || runs.seen || math.Abs(got-c.noise) > 5e-4*max(1, c.noise/2) {
			t.Errorf("%s: noise %v, want %v", name, got, c.noise)
		}
	}
}

// TestGridInOnePlace: nobody sees the runs of who holds all examples but its owner, so
// that random stopping needs no pivot; classes are told apart by their errors.
func TestGridInOnePlace(t *testing.T) {
	p := loaded(t, declared(t), "run: run.yaml\ngrid: {algorithm.local.step: [0.1, 1]}\ntuning: {charge: grid, distribution: poisson}\n",
		"algorithm.rounds=1", "algorithm.local.steps=3", "privacy.public_size=600")
	r := swept(t, p, options(t, nil))
	prices := byWay(r)
	if r.Metric != "error" || r.Shared != 2 || prices[WayRandom].Pivot || prices[WayRandom].Runs != 2 || prices[WayGrid].Privacy.Claim != event.ClaimProved {
		t.Errorf("%+v", r)
	}
	if e := prices[WayGrid].Privacy.Epsilon; e > 3 || e < 2.999 {
		t.Errorf("the grid costs %v of 3", e)
	}
	if one, all := prices[WayOne].Noise, prices[WayGrid].Noise; !(*one < *all) {
		t.Errorf("noise %v of one run, %v of two", *one, *all)
	}
	at := map[int]Growth{}
	for _, g := range r.Growth {
		at[g.Runs] = g
	}
	if g := at[2]; at[1].Grid != prices[WayOne].Privacy.Epsilon || g.Grid != prices[WayGrid].Privacy.Epsilon || g.Random == nil || *g.Random != prices[WayRandom].Privacy.Epsilon || at[1].Random != nil || at[10].Grid <= g.Grid {
		t.Errorf("growth %+v, prices %+v", r.Growth, r.Prices)
	}
}

// TestExamples: the files that are shown can be read.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../examples/sweep/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		if _, err := Load(file, nil); err != nil {
			t.Error(err)
		}
	}
}

// TestKeysWithoutAPrice: what one run of a grid is prepared for others by changes nothing
// of what they cost.
func TestKeysWithoutAPrice(t *testing.T) {
	o := options(t, schools(t))
	client := "data: {kind: school}\nalgorithm: {kind: fedavg, rounds: 3}\nprivacy: {protects: client, epsilon: 6, delta: 0.001}\n"
	for path, c := range map[string]struct {
		run    string
		values []string
	}{
		"algorithm.lambda":           {soundSchool(), []string{"0.1", "10", "auto"}},
		"algorithm.local.step":       {soundSchool(), []string{"0.001", "0.1"}},
		"algorithm.local.step_decay": {declared(t), []string{"0.001", "0.1"}},
		"privacy.clip":               {soundSchool(), []string{"0.001", "100"}},
		"privacy.update_clip":        {client, []string{"0.001", "100"}},
		"privacy.clipping.quantile":  {strings.Replace(declared(t), "protects: example", "protects: example, clipping: {rule: quantile}", 1), []string{"0.1", "0.9"}},
	} {
		p := loaded(t, c.run, "run: run.yaml\ngrid: {"+path+": ["+strings.Join(c.values, ", ")+"]}\n")
		var first counted
		var key string
		for i, point := range p.Points {
			runs, err := o.wallets(t.Context(), point.Run)
			if err != nil {
				t.Fatal(err)
			}
			one, err := priceKey(point.Run)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first, key = runs, one
			}
			if one != key || runs.seen != first.seen {
				t.Errorf("%s: %s is prepared by itself", path, point.Label())
			}
			for k, w := range runs.wallets {
				other := first.wallets[k]
				a, provedA := w.plan.Trainings(w.paid)
				b, provedB := other.plan.Trainings(other.paid)
				if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(provedA, provedB) || w.paid != other.paid {
					t.Errorf("%s: %s costs %+v, another %+v", path, point.Label(), a, b)
				}
			}
		}
	}
}

// TestRunsOfAChargedGridDrawTheirOwn: two points whose settings hardly differ would come to
// the same figures if they shared batches and noise, and whoever sees both could subtract
// one from the other. Their figures differ by far more than their settings; the rows that
// are held out are the same.
func TestRunsOfAChargedGridDrawTheirOwn(t *testing.T) {
	figures := func(tuning string) (float64, float64) {
		p := loaded(t, declared(t), "run: run.yaml\ngrid: {algorithm.local.step: [0.1, 0.10000001]}\n"+tuning,
			"algorithm.rounds=2", "algorithm.local.steps=3")
		r := swept(t, p, options(t, nil))
		return float64(r.Points[0].Mean), float64(r.Points[1].Mean)
	}
	if a, b := figures(""); math.Abs(a-b) > 1e-5 {
		t.Fatalf("free points come to %v and %v: the settings alone make a difference", a, b)
	}
	if a, b := figures("tuning: {charge: grid}\n"); math.Abs(a-b) < 1e-4 {
		t.Errorf("charged points come to %v and %v: they share their noise", a, b)
	}
}
