package sweep

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/theory"
)

const chargedGrid = `
run: run.yaml
seeds: 2
grid: {algorithm.lambda: [0.1, 1, 10], algorithm.local.step: [0.003, 0.01]}
tuning: {charge: grid}
`

const freeGrid = `
run: run.yaml
grid: {algorithm.lambda: [0.1, 1, 10], algorithm.local.step: [0.003, 0.01]}
`

func soundSchool() string {
	return strings.Replace(schoolRun, "accounting: paper", "accounting: sound", 1)
}

func swept(t *testing.T, p *Plan, o Options) Result {
	t.Helper()
	r, err := p.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// byWay are a result's prices by their names.
func byWay(r Result) map[string]Price {
	out := map[string]Price{}
	for _, p := range r.Prices {
		out[p.Way] = p
	}
	return out
}

// TestPricesByHand holds the prices of a grid against the events of its runs, written out
// by hand at the noise that the runs were made with.
func TestPricesByHand(t *testing.T) {
	folder := schools(t)
	for _, method := range []string{"mr-mtl", "local"} { // what is sent is seen, and paid for beside the trials
		run := strings.Replace(soundSchool(), "kind: mr-mtl", "kind: "+method, 1)
		grid := strings.Replace(freeGrid, "algorithm.lambda: [0.1, 1, 10]", "privacy.clip: [0.1, 1, 10]", 1)
		p, o := loaded(t, run, grid), options(t, folder)
		prices := byWay(swept(t, p, o))
		runs, err := o.wallets(t.Context(), p.Points[0].Run)
		if err != nil {
			t.Fatal(err)
		}
		trials, err := theory.NegativeBinomialTrials(0, 6)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{}
		var noises []float64 // of random stopping
		for _, w := range runs.wallets {
			pupils := int64(w.plan.Examples)
			ways := func(noise float64) map[string]event.Event {
				one := event.Repeated{Times: 12 * (pupils / 10), Of: event.Sampled{
					Sampling: event.WithoutReplacement, Batch: 10, Examples: pupils, Of: event.Gaussian{Noise: noise},
				}}
				best := event.Event(event.Tuning{Distribution: event.TruncatedNegativeBinomial, Gamma: trials.Gamma, Of: one})
				if method == "mr-mtl" {
					best = event.Composed{Parts: []event.Event{one, best}}
				}
				return map[string]event.Event{WayOne: one, WayGrid: event.Repeated{Times: 6, Of: one}, WayRandom: best}
			}
			cost := func(what event.Event) (float64, error) {
				g, err := account.Spend(event.Release{
					Unit: event.UnitExample, Relation: event.ReplaceOne, Claim: event.ClaimProved, Trust: event.TrustLocal, What: what,
				}, account.MethodRDP, 0.001)
				return g.Epsilon, err
			}
			for way, what := range ways(w.plan.Noise) {
				epsilon, err := cost(what)
				if err != nil {
					t.Fatal(err)
				}
				want[way] = max(want[way], epsilon)
			}
			noise, err := account.LeastNoise(6, func(noise float64) (float64, error) { return cost(ways(noise)[WayRandom]) })
			if err != nil {
				t.Fatal(err)
			}
			noises = append(noises, noise)
		}
		if median, _ := fl.MedianAndMax(noises); math.Abs(float64(*prices[WayRandom].Noise)-median) > 1e-6 {
			t.Errorf("%s: random stopping needs the noise %v, by hand %v", method, *prices[WayRandom].Noise, median)
		}
		for way, epsilon := range want {
			got := prices[way].Privacy
			if math.Abs(float64(got.Epsilon)-epsilon) > 1e-9*epsilon || got.Claim != event.ClaimProved || got.Relation != event.ReplaceOne || got.Delta != 0.001 {
				t.Errorf("%s: %s costs %+v, by hand %v", method, way, got, epsilon)
			}
		}
		one, grid6, random := prices[WayOne], prices[WayGrid], prices[WayRandom]
		if random.Pivot != (method == "mr-mtl") || grid6.Runs != 6 || math.Abs(float64(random.Runs)-6) > 1e-6 {
			t.Errorf("%s: %+v, %+v", method, grid6, random)
		}
		if !(*one.Noise < *random.Noise && *random.Noise < *grid6.Noise) {
			t.Errorf("%s: noise %v for one run, %v for random stopping, %v for the grid", method, *one.Noise, *random.Noise, *grid6.Noise)
		}
	}
}

// TestOneRunCostsWhatItSays: the price of one run is what a participant that has made all
// of its rounds says, in every accounting.
func TestOneRunCostsWhatItSays(t *testing.T) {
	o := options(t, schools(t))
	paper := strings.Replace(schoolRun, "kind: school", "kind: school, standardise: none", 1)
	exact := strings.Replace(paper, "clip: 1", "clip: 1, noise: exact", 1)
	for name, run := range map[string]string{"paper": paper, "exact": exact, "sound": soundSchool()} {
		runs, err := o.wallets(t.Context(), loaded(t, run, freeGrid).Base)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range runs.wallets {
			g, proved, err := one(w).cost(nil)
			if err != nil {
				t.Fatal(err)
			}
			want, sound, err := w.plan.Spend(w.paid)
			if err != nil || !reflect.DeepEqual(g, want) || !reflect.DeepEqual(proved, sound) {
				t.Errorf("%s: %s: a run costs %+v and %+v, it says %+v and %+v (%v)", name, w.name, g, proved, want, sound, err)
			}
			w.plan.Lattice = nil // continuous noise costs less
			if less, _, err := one(w).cost(nil); name == "exact" && (err != nil || less.Epsilon > g.Epsilon-1e-4) {
				t.Errorf("exact noise costs %v, continuous %v (%v)", g.Epsilon, less.Epsilon, err)
			}
		}
	}
}

// TestChargedGridKeepsTheTarget: in every accounting the runs that were made keep the
// target together, of every seed, and one alone costs less. What a run says of itself is
// the price of one: the runs were made at the noise that was priced.
func TestChargedGridKeepsTheTarget(t *testing.T) {
	folder := schools(t)
	for name, run := range map[string]string{
		"paper":  strings.Replace(schoolRun, "kind: school", "kind: school, standardise: none", 1),
		"scaled": schoolRun,
		"sound":  soundSchool(),
		"exact":  strings.Replace(soundSchool(), "clip: 1", "clip: 1, noise: exact", 1),
		"client": "data: {kind: school}\nalgorithm: {kind: fedavg, rounds: 3, local: {step: 0.01, batch: 10}}\nprivacy: {protects: client, epsilon: 6, delta: 0.001}\n",
	} {
		t.Run(name, func(t *testing.T) {
			grid := chargedGrid
			if name == "client" {
				grid = strings.Replace(grid, "algorithm.lambda: [0.1, 1, 10]", "privacy.update_clip: [0.1, 1, 10]", 1)
			}
			p := loaded(t, run, grid, "algorithm.rounds=3")
			r := swept(t, p, options(t, folder))
			prices := byWay(r)
			one, all := prices[WayOne].Privacy, prices[WayGrid].Privacy
			if r.Tuning != "grid charged" || r.Shared != 6 || r.Runs != 12 || r.Seeds != 2 {
				t.Errorf("%+v", r)
			}
			if all.Epsilon > 6 || all.Epsilon < 5.99 || one.Epsilon > 4 || r.Privacy.Epsilon != all.Epsilon {
				t.Errorf("one run costs %v, the grid %v of 6, stated is %v", one.Epsilon, all.Epsilon, r.Privacy.Epsilon)
			}
			if (prices[WayGrid].Proved != nil) != (name == "paper") || name == "paper" && prices[WayGrid].Proved.Epsilon <= all.Epsilon {
				t.Errorf("proved: %+v", prices[WayGrid].Proved)
			}
			if _, ok := prices[WayRandom]; ok == (name == "client") {
				t.Errorf("random stopping: %v, %v", ok, r.Says)
			}
			sharing := p.sharing(r.Shared)[2].Run
			sharing.Seed++ // another seed splits pupils otherwise
			sharing.Run.Workers = 1
			if name != "exact" { // whose figures are not repeated
				cell, err := simulate(t.Context(), sharing, folder, nil)
				if err != nil || cell.Value != r.Points[2].Values[1] {
					t.Errorf("a run by itself gives %v, in the sweep %v (%v)", cell.Value, r.Points[2].Values[1], err)
				}
				if math.Abs(float64(cell.Privacy.Epsilon/one.Epsilon-1)) > 0.02 {
					t.Errorf("a run says that it cost %v, the price of one is %v", cell.Privacy.Epsilon, one.Epsilon)
				}
			}
			joined := strings.Join(r.Privacy.NotCovered, "; ")
			for _, word := range []string{"held-out", "all seeds together", "tuning beside this grid"} {
				if !strings.Contains(joined, word) {
					t.Errorf("not covered lacks %q: %s", word, joined)
				}
			}
			if strings.Contains(joined, account.UncoveredTuning) {
				t.Errorf("tuning was paid for, and still is not covered: %s", joined)
			}
		})
	}
}

// TestUnequalRunsShareATarget: the points of this grid cost differently, and their sum
// still keeps the target, with hardly any of it left.
func TestUnequalRunsShareATarget(t *testing.T) {
	grid := "run: run.yaml\ngrid: {algorithm.local.batch: [5, 10, 30], algorithm.rounds: [2, 12]}\ntuning: {charge: grid}\n"
	r := swept(t, loaded(t, soundSchool(), grid), options(t, schools(t)))
	all := byWay(r)[WayGrid].Privacy.Epsilon
	if all > 6 || all < 0.9*6 || r.Shared < 6 || r.Shared > 7 {
		t.Errorf("the grid costs %v of 6, noise is for %d runs", all, r.Shared)
	}
	if _, ok := byWay(r)[WayRandom]; ok || !strings.Contains(strings.Join(r.Says, " "), "differ in what a run costs") {
		t.Errorf("random stopping of unlike runs: %+v", r.Says)
	}
	// A sum that forgets one of the two kinds is seen.
	p := loaded(t, soundSchool(), grid)
	o := options(t, schools(t))
	c, err := p.count(t.Context(), o, p.sharing(r.Shared), 0, p.Base.Seed)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.all {
		if len(c.all[i].kinds) != 6 {
			t.Errorf("%d kinds of runs, want 6", len(c.all[i].kinds))
		}
		c.all[i].kinds, c.all[i].times = c.all[i].kinds[1:], c.all[i].times[1:]
	}
	less, err := c.cost(t.Context(), c.all, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range less.costs {
		if g.Epsilon > 0.97*float64(all) {
			t.Errorf("participant %d: a run less costs %v of %v", i, g.Epsilon, all)
		}
	}
}

// TestRunsWithoutACommonPrice: their sweep is made, and says why it has no prices; a
// charged one is refused before anything is trained.
func TestRunsWithoutACommonPrice(t *testing.T) {
	for name, c := range map[string]struct{ run, grid, says string }{
		"nothing":   {"algorithm: {kind: ifca, rounds: 2}\n", "{algorithm.local.step: [0.01, 0.1]}", "privacy.protects nothing"},
		"update":    {"algorithm: {kind: group-private, rounds: 2}\n", "{algorithm.local.step: [0.01, 0.1]}", "privacy.protects update"},
		"two sides": {schoolRun, "{privacy.epsilon: [3, 6]}", "differ"},
	} {
		p := loaded(t, c.run, "run: run.yaml\ngrid: "+c.grid+"\n", "algorithm.rounds=2")
		r := swept(t, p, options(t, schools(t)))
		if len(r.Prices) != 0 || !strings.Contains(r.Says[len(r.Says)-1], c.says) {
			t.Errorf("%s: %+v, %v", name, r.Prices, r.Says)
		}
	}
	p := loaded(t, schoolRun, chargedGrid)
	p.Points[1].Run.Privacy.Delta = 1e-4 // no file can say so
	_, err := p.Run(t.Context(), options(t, schools(t)))
	if !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "differ") {
		t.Errorf("%v", err)
	}
}

// TestEverySeedIsPriced: of seeds that split the rows otherwise, each is held against the
// target before anything is trained.
func TestEverySeedIsPriced(t *testing.T) {
	o := options(t, schoolsOf(t, 2, 2)) // by some seeds nobody is held out, and no run can be judged
	p := loaded(t, soundSchool(), strings.Replace(chargedGrid, "seeds: 2", "seeds: 1", 1))
	works := func(seed uint64) bool {
		run := p.Base
		run.Seed = seed
		_, err := o.wallets(t.Context(), run)
		return err == nil
	}
	for p.Base.Seed = 1; !works(p.Base.Seed) || works(p.Base.Seed+1); p.Base.Seed++ {
		if p.Base.Seed > 100 {
			t.Fatal("no seed holds nobody out: change the test")
		}
	}
	if _, err := p.share(t.Context(), o); err != nil {
		t.Errorf("the first seed alone: %v", err)
	}
	p.Seeds = 2
	if _, err := p.share(t.Context(), o); err == nil {
		t.Error("a second seed that has no price shares the target")
	}
}

func TestRefusedCharges(t *testing.T) {
	in := func(grid string) string {
		return strings.Replace(chargedGrid, "algorithm.lambda: [0.1, 1, 10]", grid, 1)
	}
	with := func(tuning string) string {
		return strings.Replace(chargedGrid, "charge: grid", "charge: grid, "+tuning, 1)
	}
	for name, c := range map[string]struct{ run, sweep, says string }{
		"epsilon":      {schoolRun, in("privacy.epsilon: [3, 6]"), "privacy.epsilon"},
		"protects":     {schoolRun, in("privacy.protects: [example]"), "privacy.protects"},
		"silos":        {schoolRun, in("privacy.silos: ['[]']"), "privacy.silos"},
		"given noise":  {strings.Replace(schoolRun, "epsilon: 6", "epsilon: 0, noise_multiplier: 3", 1), chargedGrid, "needs privacy.epsilon"},
		"update":       {"algorithm: {kind: group-private}\n", "run: run.yaml\ngrid: {algorithm.local.step: [1, 2]}\ntuning: {charge: grid}\n", "protects is update"},
		"runs":         {strings.Replace(schoolRun, "clip: 1", "clip: 1, runs: 4", 1), chargedGrid, "counts its runs itself"},
		"evaluate":     {schoolRun + "judge: {evaluate: {epsilon: 1}}\n", chargedGrid, "judge.evaluate"},
		"mean":         {schoolRun, with("mean_trials: 3"), "mean_trials"},
		"score":        {schoolRun, with("score: {bound: 1, noise: 1}"), "score"},
		"entropy":      {schoolRun, with("entropy: seeded"), "entropy"},
		"eta":          {schoolRun, with("eta: -2"), "eta"},
		"charge":       {schoolRun, strings.Replace(chargedGrid, "grid}", "everything}", 1), "tuning.charge"},
		"random, runs": {strings.Replace(schoolRun, "clip: 1", "clip: 1, runs: 4", 1), charged, "counts its trials itself"},
	} {
		if _, err := plan(t, c.run, c.sweep); !errors.Is(err, config.ErrInvalid) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v, want a fault that names %q", name, err, c.says)
		}
	}
}

// TestEverySeedChoosesForItself: what tuning comes to is each seed's own best, and not the
// best of the means.
func TestEverySeedChoosesForItself(t *testing.T) {
	nan := event.Number(math.NaN())
	c := chosen([]PointResult{{Values: []event.Number{nan, 2, 7}}, {Values: []event.Number{3, 4, 5}}, {Values: []event.Number{4, 1, nan}}}, 3)
	if fmt.Sprint(c.Points) != "[1 2 1]" || c.Mean != 3 || c.SD != 2 {
		t.Errorf("%+v", c)
	}
}
