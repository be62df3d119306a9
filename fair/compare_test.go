package fair

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/coterie-fl/coterie/internal/rng"
)

// threeClients: client 1 (group a) is best off alone, client 2 (a) by the
// personalised model, client 3 (b) by the global and the personalised alike.
func threeClients() Losses {
	return Losses{
		Group:   strings.Split("aaaabb", ""),
		Cluster: []int{1, 1, 2, 2, 3, 3},
		Models: []ModelLoss{
			{"local", []float64{1, 1, 4, 6, 5, 7}},
			{"global", []float64{2, 4, 3, 3, 1, 1}},
			{"personalised", []float64{2, 2, 2, 2, 1, 1}},
		},
	}
}

func TestCompareByHand(t *testing.T) {
	c, err := Compare(threeClients(), Bootstrap{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	type pair struct{ difference, better, worse, same float64 }
	for _, want := range []struct {
		panel         Panel
		group         string
		rows, clients int
		means, best   [3]float64
		noBest        float64
		pairs         map[string]pair
	}{
		{c.Overall, "all", 6, 3, [3]float64{4, 14.0 / 6, 10.0 / 6}, [3]float64{1.0 / 3, 0, 1.0 / 3}, 1.0 / 3, map[string]pair{
			"global-local": {-10.0 / 6, 2.0 / 3, 1.0 / 3, 0}, "personalised-local": {-14.0 / 6, 2.0 / 3, 1.0 / 3, 0},
			"personalised-global": {-4.0 / 6, 2.0 / 3, 0, 1.0 / 3},
		}},
		{c.Groups[0], "a", 4, 2, [3]float64{3, 3, 2}, [3]float64{0.5, 0, 0.5}, 0, map[string]pair{
			"global-local": {0, 0.5, 0.5, 0}, "personalised-local": {-1, 0.5, 0.5, 0}, "personalised-global": {-1, 1, 0, 0},
		}},
		{c.Groups[1], "b", 2, 1, [3]float64{6, 1, 1}, [3]float64{}, 1, map[string]pair{
			"global-local": {-5, 1, 0, 0}, "personalised-local": {-5, 1, 0, 0}, "personalised-global": {0, 0, 0, 1},
		}},
	} {
		p := want.panel
		if p.Group != want.group || p.Rows != want.rows || p.Clients != want.clients || math.Abs(p.NoBest-want.noBest) > 1e-12 {
			t.Errorf("panel %q: %d rows, %d clients, no best for %v", p.Group, p.Rows, p.Clients, p.NoBest)
		}
		for m, model := range p.Models {
			if err := same(p.Group+", mean of "+model.Name, model.MeanLoss.Value, want.means[m]); err != nil {
				t.Error(err)
			}
			if err := same(p.Group+", best by "+model.Name, model.Best.Value, want.best[m]); err != nil {
				t.Error(err)
			}
		}
		if len(p.Pairs) != len(want.pairs) {
			t.Errorf("panel %q has %d pairs", p.Group, len(p.Pairs))
		}
		for _, got := range p.Pairs {
			name := got.Model + "-" + got.Baseline
			w := want.pairs[name]
			if *got.Difference.Value != w.difference && math.Abs(*got.Difference.Value-w.difference) > 1e-12 ||
				*got.Better.Value != w.better || *got.Worse.Value != w.worse || math.Abs(got.Same-w.same) > 1e-12 {
				t.Errorf("%s, %s: %+v, want %+v", p.Group, name, got, w)
			}
		}
	}
	// One client is no basis for an interval of a mean, nor for a verdict.
	lone := c.Groups[1].Pairs[0]
	if lone.Difference.Low != nil || lone.Verdict != Unclear || !strings.Contains(lone.Difference.Why, "only one unit") {
		t.Errorf("%+v", lone)
	}
}

// A client with rows in two groups counts once over all, by all its rows.
func TestCompareClientInTwoGroups(t *testing.T) {
	c, err := Compare(Losses{
		Group:   []string{"a", "b", "b"},
		Cluster: []int{5, 5, 6},
		Models:  []ModelLoss{{"one", []float64{3, 0, 1}}, {"two", []float64{1, 1, 2}}},
	}, Bootstrap{})
	if err != nil {
		t.Fatal(err)
	}
	better := func(p Panel) float64 { return *p.Pairs[0].Better.Value }
	if better(c.Groups[0]) != 1 || better(c.Groups[1]) != 0 || better(c.Overall) != 0.5 ||
		c.Groups[1].Clients != 2 || c.Overall.Clients != 2 {
		t.Errorf("%+v", c)
	}
}

// TestCompareAgreesWithDefinitions: means and shares, one loop each.
func TestCompareAgreesWithDefinitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRows(t)
		n := len(r.Truth)
		draw := rapid.SliceOfN(rapid.IntRange(0, 3), n, n)
		in := Losses{Group: r.Group, Cluster: r.Cluster}
		for _, name := range []string{"x", "y", "z"} {
			m := ModelLoss{Name: name}
			for _, v := range draw.Draw(t, name) {
				m.Loss = append(m.Loss, float64(v))
			}
			in.Models = append(in.Models, m)
		}
		c, err := Compare(in, Bootstrap{Resamples: 39})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range append(c.Groups, c.Overall) {
			sums := map[int]*[3]float64{} // by client; as each model has as many rows, sums rank as means do
			var total [3]float64
			rows := 0
			for i := range n {
				if p.Group != "all" && p.Group != r.Group[i] {
					continue
				}
				client := i
				if r.Cluster != nil {
					client = r.Cluster[i]
				}
				if sums[client] == nil {
					sums[client] = new([3]float64)
				}
				rows++
				for m := range total {
					sums[client][m] += in.Models[m].Loss[i]
					total[m] += in.Models[m].Loss[i]
				}
			}
			shares := 0.0
			for m, model := range p.Models {
				best := 0.0
				for _, s := range sums {
					if s[m] < s[(m+1)%3] && s[m] < s[(m+2)%3] {
						best++
					}
				}
				if err := same("best", model.Best.Value, best/float64(len(sums))); err != nil {
					t.Fatal(err)
				}
				if err := same("mean", model.MeanLoss.Value, total[m]/float64(rows)); err != nil {
					t.Fatal(err)
				}
				shares += *model.Best.Value
			}
			if math.Abs(shares+p.NoBest-1) > 1e-12 || p.Rows != rows || p.Clients != len(sums) {
				t.Fatalf("%+v, want %d rows, %d clients", p, rows, len(sums))
			}
			for i, pair := range [][2]int{{1, 0}, {2, 0}, {2, 1}} {
				better := 0.0
				for _, s := range sums {
					if s[pair[0]] < s[pair[1]] {
						better++
					}
				}
				if err := same("better", p.Pairs[i].Better.Value, better/float64(len(sums))); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// simulatedLosses: per client, the second model is better by a normal amount of
// mean gain and deviation 1; rows add noise that both models share.
func simulatedLosses(family rng.Family, population, clients, size int, gain float64) Losses {
	src := family.Stream(population, 1)
	in := Losses{Models: []ModelLoss{{Name: "global"}, {Name: "personalised"}}}
	for client := range clients {
		own := src.Normal() - gain
		for range size {
			hard := 10 * src.Normal()
			in.Group = append(in.Group, "g")
			in.Cluster = append(in.Cluster, client)
			in.Models[0].Loss = append(in.Models[0].Loss, hard)
			in.Models[1].Loss = append(in.Models[1].Loss, hard+own+src.Normal())
		}
	}
	return in
}

// TestPairedCoverage: the interval of the difference holds the truth, and is not
// widened by what both models share. False alarms: plausible's 1e-6.
func TestPairedCoverage(t *testing.T) {
	const populations, gain = 200, 0.5
	count := func(change func(*Losses)) (hits int, width float64) {
		family := rng.NewFamily(13, "test pairs")
		for p := range populations {
			in := simulatedLosses(family, p, 80, 5, gain)
			change(&in)
			c, err := Compare(in, Bootstrap{Seed: uint64(p), Resamples: 199})
			if err != nil {
				t.Fatal(err)
			}
			e := c.Overall.Pairs[0].Difference
			if *e.Low <= -gain && -gain <= *e.High {
				hits++
			}
			width += (*e.High - *e.Low) / populations
		}
		return hits, width
	}
	hits, width := count(func(*Losses) {})
	if !plausible(hits, populations) {
		t.Errorf("%d of %d intervals hold the truth", hits, populations)
	}
	// A client's mean difference has the variance 1 + 1/5.
	if want := 2 * 1.96 * math.Sqrt(1.2/80); math.Abs(width/want-1) > 0.05 {
		t.Errorf("mean width %v, want about %v", width, want)
	}
	if hits, _ := count(func(in *Losses) { in.Cluster = nil }); plausible(hits, populations) {
		t.Errorf("not caught: rows taken for independent, %d of %d", hits, populations)
	}
}

func TestVerdicts(t *testing.T) {
	family := rng.NewFamily(14, "test verdicts")
	for gain, want := range map[float64]Verdict{2: Gains, -2: Loses, 0: Unclear} {
		c, err := Compare(simulatedLosses(family, 0, 80, 5, gain), Bootstrap{})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Overall.Pairs[0].Verdict; got != want {
			t.Errorf("gain %v: %q, want %q", gain, got, want)
		}
	}
}

// TestWilson: the ends solve (p - q)^2 = z^2 q(1-q)/n, which is what defines them.
func TestWilson(t *testing.T) {
	for _, c := range []struct{ k, n int }{{0, 12}, {12, 12}, {3, 10}, {500, 1000}, {1, 1}} {
		e := share(c.k, c.n, 0.95)
		z := distuv.UnitNormal.Quantile(0.975)
		for _, q := range []float64{*e.Low, *e.High} {
			off := (*e.Value-q)*(*e.Value-q) - z*z*q*(1-q)/float64(c.n)
			if math.Abs(off) > 1e-12 || q < 0 || q > 1 {
				t.Errorf("%d of %d: end %v is off by %v", c.k, c.n, q, off)
			}
		}
		if *e.Low > *e.Value || *e.High < *e.Value || *e.Low == *e.High {
			t.Errorf("%d of %d: %v", c.k, c.n, e)
		}
	}
}

func TestBadLossesAreRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Losses){
		"no rows":                               func(in *Losses) { in.Group = nil },
		"1 models to compare":                   func(in *Losses) { in.Models = in.Models[:1] },
		`model 1 is named "local"`:              func(in *Losses) { in.Models[1].Name = "local" },
		`model 2 is named ""`:                   func(in *Losses) { in.Models[2].Name = "" },
		`loss of model "global" has 5 values`:   func(in *Losses) { in.Models[1].Loss = in.Models[1].Loss[1:] },
		`loss of model "local" of row 3 is NaN`: func(in *Losses) { in.Models[0].Loss[3] = math.NaN() },
		"Cluster has 1 values":                  func(in *Losses) { in.Cluster = in.Cluster[:1] },
		"row 0 has no group":                    func(in *Losses) { in.Group[0] = "" },
	} {
		in := threeClients()
		spoil(&in)
		if _, err := Compare(in, Bootstrap{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, err := Compare(threeClients(), Bootstrap{Level: 2}); err == nil {
		t.Error("a level of 2 is taken")
	}
}

// TestLargeLosses: the largest losses allowed still give numbers.
func TestLargeLosses(t *testing.T) {
	in := threeClients()
	in.Models[0].Loss = []float64{maxLoss, maxLoss, maxLoss, -maxLoss, -maxLoss, maxLoss}
	c, err := Compare(in, Bootstrap{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back Comparison
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(&back, c) {
		t.Errorf("read back: %v, %+v", err, back)
	}
}
