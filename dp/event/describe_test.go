package event

import (
	"math"
	"strings"
	"testing"
)

// internal are the spellings that programs read; people are not shown them.
var internal = []string{
	"composed", "repeated:", "sampled:", "metric-laplace", "discrete-gaussian", "node-gaussian", "node-thinned", "kind", "event.", "{", "tnb", "naive",
}

func noInternals(t *testing.T, what, text string) {
	t.Helper()
	for _, word := range internal {
		if strings.Contains(text, word) {
			t.Errorf("%s shows %q: %s", what, word, text)
		}
	}
}

// TestDescribe has every kind, alone and in others.
func TestDescribe(t *testing.T) {
	step := Sampled{Sampling: Poisson, Rate: 0.01, Of: Gaussian{1.1}}
	for want, e := range map[string]Event{
		"Gaussian noise of 1.1 times the clip":                                                      Gaussian{1.1},
		"Laplace noise of 0.333333 times the clip":                                                  Laplace{1.0 / 3},
		"whole-number Gaussian noise of 4 on counts up to 2":                                        DiscreteGaussian{4, 2},
		"Laplace noise on 1 value, noise multiplier 5, radius 0.2":                                  MetricLaplace{Dimension: 1, NoiseMultiplier: 5, Radius: 0.2, Slack: 1e-9},
		"Laplace noise on 2 values, noise multiplier 5, radius 0.2, models up to 3 apart":           MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 0.2, Spread: 3},
		"a private choice (exponential, parameter 0.1)":                                             Selection{Exponential, 0.1},
		"Gaussian noise of 4.5 times the clip on batches of 8 of 100 nodes, each node in at most 3": NodeGaussian{100, 3, 8, 4.5, Theorem},
		"Gaussian noise of 40 times the clip on the sum of all nodes' examples, each contact in them kept with chance 0.02 by a secret draw, nobody having more than 160": NodeThinned{160, 0.02, 40},
		"something without noise": Unprotected{},
		"1000 times Gaussian noise of 1.1 times the clip on batches that each example is in with chance 0.01": Repeated{1000, Composed{[]Event{step}}},
		"3 times (Gaussian noise of 1.1 times the clip, and a private choice (exponential, parameter 2))":     Repeated{3, Composed{[]Event{Repeated{1, Gaussian{1.1}}, Selection{Exponential, 2}}}},
		"Gaussian noise of 2 times the clip on batches of 8 of 100 examples, each drawn afresh":               Sampled{Sampling: WithoutReplacement, Batch: 8, Examples: 100, Of: Gaussian{2}},
		"Gaussian noise of 2 times the clip on a shuffled pass over 100 examples in batches of 8":             Sampled{Sampling: Shuffle, Batch: 8, Examples: 100, Of: Gaussian{2}},
		"Gaussian noise of 2 times the clip":                      Sampled{Sampling: FullBatch, Of: Gaussian{2}},
		"the best of 1 run of Gaussian noise of 2 times the clip": Tuning{Distribution: NaiveTrials, Trials: 1, Of: Gaussian{2}},
		"the best of a random number of runs (10 on average) of (Gaussian noise of 2 times the clip, and something without noise)": Tuning{Distribution: TruncatedNegativeBinomial, Mean: 10, Of: Composed{[]Event{Gaussian{2}, Unprotected{}}}},
		"the best of a random number of runs (eta 1, gamma 0.5) of Gaussian noise of 2 times the clip":                             Tuning{Distribution: TruncatedNegativeBinomial, Eta: 1, Gamma: 0.5, Of: Gaussian{2}},
	} {
		if got := Describe(e); got != want {
			t.Errorf("%s\n  want %s", got, want)
		}
		if err := Validate(e); err != nil {
			t.Error(err)
		}
		noInternals(t, "the description", Describe(e))
	}
}

// TestDescribeEndsSomewhere: a stranger's event is described before anybody has judged it.
func TestDescribeEndsSomewhere(t *testing.T) {
	var deep Event = Gaussian{1}
	for range 1000 {
		deep = Repeated{2, deep}
	}
	if text := Describe(deep); len(text) > 500 || !strings.HasSuffix(text, "…") {
		t.Errorf("%d characters", len(text))
	}
	if text := Describe(nil); text != "nothing" {
		t.Error(text)
	}
}

// TestFaultsAreInWords: what is wrong inside of nested events is said with the value and
// what would do, once, and without the way to it through the tree.
func TestFaultsAreInWords(t *testing.T) {
	around := func(e Event) Event {
		return Composed{[]Event{Repeated{7, Sampled{Sampling: Poisson, Rate: 0.5, Of: e}}}}
	}
	for want, e := range map[string]Event{
		"Gaussian noise: value out of range: noise = 0, want a finite number > 0":             around(Gaussian{}),
		"Laplace noise: value out of range: scale = NaN, want a finite number > 0":            around(Laplace{math.NaN()}),
		"batches: value out of range: rate = 2, want 0 to 1":                                  around(Sampled{Sampling: Poisson, Rate: 2, Of: Gaussian{1}}),
		"a repeated release: value out of range: times = -1, want at least 0":                 around(Repeated{-1, Gaussian{1}}),
		"releases together: value out of range: parts = 0, want at least 1":                   around(Composed{}),
		"tuning: value out of range: trials = 0, want at least 1":                             around(Tuning{Distribution: NaiveTrials, Of: Gaussian{1}}),
		"a private choice: value out of range: epsilon = 0, want a finite number > 0":         around(Selection{Mechanism: Exponential}),
		"whole-number Gaussian noise: value out of range: bound = 0, want at least 1":         around(DiscreteGaussian{Sigma: 1}),
		"Laplace noise at a radius: value out of range: radius = 0, want a finite number > 0": around(MetricLaplace{Dimension: 1, NoiseMultiplier: 1}),
		"noise for nodes: value out of range: noise = -1, want a finite number > 0":           around(NodeGaussian{10, 2, 3, -1, Theorem}),
		"value out of range: no event":                                                        around(nil),
	} {
		err := Validate(e)
		if err == nil || err.Error() != want {
			t.Errorf("%v\n  want %s", err, want)
		}
	}
	both := Validate(Composed{[]Event{Gaussian{}, Repeated{-1, Laplace{}}}})
	if lines := strings.Split(both.Error(), "\n"); len(lines) != 3 {
		t.Errorf("three faults, and %d are told: %v", len(lines), both)
	}
}
