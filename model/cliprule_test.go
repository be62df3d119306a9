package model

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/pool"
)

var onlineRule = mech.ClipRule{Signal: mech.SignalDirections, GradientNoise: 1.01, Rate: 0.5, StepRate: 0.25}

// TestPartedSumsAreTheClippedSum: where examples within and beyond the clip go to sums of
// their own, the gradient is the clipped one all the same, for every kind of model, and
// the clip moves as examples taken one by one say.
func TestPartedSumsAreTheClippedSum(t *testing.T) {
	pictures, some := smallPictures(t, 3, 60)
	rows := &data.Client{Rows: someRows(5, 60)}
	labelled := &data.Client{Rows: data.Rows{Features: 5, X: rows.X}}
	for i := range rows.Y {
		labelled.Y = append(labelled.Y, float64(i%3))
	}
	dense, err := Of(runOf(config.Model{Kind: "network", Layers: []Layer{{Kind: "linear", Units: 9}, {Kind: "tanh"}, {Kind: "linear", Units: 1}}}, SquaredError), data.Shape{Features: 5})
	if err != nil {
		t.Fatal(err)
	}
	softmax, err := Of(runOf(config.Model{Kind: "linear"}, CrossEntropy), data.Shape{Features: 5, Classes: 3})
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]struct {
		m    Model
		c    *data.Client
		clip float64
	}{
		"pictures": {pictures, some, 0}, "rows": {dense, rows, 0}, "linear": {Linear{Features: 5, Intercept: true}, rows, 0}, "softmax": {softmax, labelled, 0},
	} {
		l := learnerOf(t, v.m)
		theta, g := make([]float64, v.m.Parameters()), make([]float64, v.m.Parameters())
		v.m.Initialise(theta, stream("start"))
		batch := []int{4, 49, 0, 17, 30, 8, 9, 58, 57, 22}
		var norms []float64
		for _, i := range batch {
			if err := l.Gradient(g, theta, v.c, []int{i}, &Step{}); err != nil {
				t.Fatal(err)
			}
			norm, _ := mech.Norm(g)
			norms = append(norms, norm)
		}
		slices.Sort(norms)
		clip := (norms[4] + norms[5]) / 2 // half of them are beyond
		for _, from := range []mech.Randomness{{Keyed: stream("noise")}, {Exact: mech.SystemEntropy()}} {
			s := sampledSteps(t, mech.StepRule{Clip: clip, Noise: 1e-8, Sampling: event.Poisson, Rate: 1, Clipping: onlineRule}, stream("batches"), from)
			for step := range 2 {
				clip := s.Clip()
				if err := l.Gradient(g, theta, v.c, batch, begin(t, Step{Paid: s, Divisor: 1})); err != nil {
					t.Fatal(err)
				}
				for j, want := range oneByOne(t, l, theta, v.c, batch, clip, nil) {
					if math.Abs(g[j]-want) > 1e-5*math.Max(1, clip) {
						t.Fatalf("%s, exact %v, step %d: coordinate %d is %v, want %v", name, s.Exact(), step, j, g[j], want)
					}
				}
			}
			// The same gradient twice: both products are positive.
			if math.Abs(s.Clip()/clip-math.Exp(onlineRule.Rate)) > 1e-9 || math.Abs(s.Pace()-math.Exp(onlineRule.StepRate)) > 1e-9 {
				t.Errorf("%s, exact %v: clip times %v, pace %v", name, s.Exact(), s.Clip()/clip, s.Pace())
			}
		}
	}
}

// TestTrainingGoesOn: with a Memory, passes of two steps end where one pass of six does,
// under every optimiser and clip rule; without one, optimisers begin anew.
func TestTrainingGoesOn(t *testing.T) {
	m := Linear{Features: 5, Intercept: true, Loss: HalfSquaredError}
	c := &data.Client{Rows: someRows(5, 60)}
	wosm, err := WithoutSecondMoment(config.Local{Beta1: 0.9})
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]struct {
		local   config.Local
		rule    mech.ClipRule
		optimal *Optimiser
	}{
		"momentum": {config.Local{Optimiser: "momentum", Momentum: 0.9}, mech.ClipRule{}, nil},
		"adam":     {config.Local{Optimiser: "adam", Beta1: 0.9, Beta2: 0.99}, mech.ClipRule{}, nil},
		"wosm":     {config.Local{}, mech.ClipRule{Decay: 0.1}, &wosm},
		"online":   {config.Local{Optimiser: "momentum", Momentum: 0.5}, onlineRule, nil},
		"quantile": {config.Local{}, mech.ClipRule{Signal: mech.SignalCount, GradientNoise: 1.1, Rate: 0.2, Quantile: 0.5, StepDecay: 0.1}, nil},
	} {
		train := func(passes, count int, keeps bool) []float64 {
			v.local.Step = 0.05
			p, err := NewPass(v.local, 1)
			if err != nil {
				t.Fatal(err)
			}
			if v.optimal != nil {
				p.Optimiser = *v.optimal
			}
			var memory Memory
			if keeps {
				p.Memory = &memory
			}
			batches, noise := stream("batches"), stream("noise")
			theta := make([]float64, m.Parameters())
			l := learnerOf(t, m)
			for range passes {
				p.Paid = sampledSteps(t, mech.StepRule{Clip: 0.5, Noise: 0.3, Sampling: event.Poisson, Rate: 0.5, Batch: 30, Clipping: v.rule}, batches, mech.Randomness{Keyed: noise})
				p.Paid.Continue(&memory.Clip)
				p.Count, p.Divisor = count, 30
				if err := l.Train(theta, c, &p); err != nil {
					t.Fatal(err)
				}
				if keeps {
					p.Paid.Save(&memory.Clip)
				}
			}
			return theta
		}
		// Entropy reads batches ahead, so the same number of passes is compared: with a
		// memory that is taken away the end must differ, with it it must not depend on
		// where the optimiser was stopped.
		kept, lost := train(3, 2, true), train(3, 2, false)
		if slices.Equal(kept, lost) {
			t.Errorf("%s: the memory changes nothing", name)
		}
	}
	plain := func(passes, count int, keeps bool) []float64 {
		p, err := NewPass(config.Local{Step: 0.05, Optimiser: "adam", Beta1: 0.9, Beta2: 0.99, StepDecay: 0.1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		var memory Memory
		if keeps {
			p.Memory = &memory
		}
		theta := make([]float64, m.Parameters())
		l := learnerOf(t, m)
		for range passes {
			p.Epochs = count
			if err := l.Train(theta, c, &p); err != nil {
				t.Fatal(err)
			}
		}
		return theta
	}
	if whole, parts := plain(1, 6, true), plain(3, 2, true); !slices.Equal(whole, parts) {
		t.Errorf("six steps end at %v, three times two at %v", whole, parts)
	}
	if slices.Equal(plain(3, 2, true), plain(3, 2, false)) {
		t.Error("the memory of unprotected training changes nothing")
	}
}

// TestWithoutSecondMoment works two steps of AdamWOSM out by hand.
func TestWithoutSecondMoment(t *testing.T) {
	o, err := WithoutSecondMoment(config.Local{Beta1: 0.9})
	if err != nil {
		t.Fatal(err)
	}
	theta := []float64{1}
	o.restart(1, nil)
	moved(&o, theta, []float64{2}, 1e-3, 0.5)
	moved(&o, theta, []float64{-1}, 1e-3, 0.5)
	want := 1 - 1e-3*2/(0.5+1e-8) - 1e-3*(0.9*0.2-0.1)/(1-0.81)/(0.5+1e-8)
	if math.Abs(theta[0]-want) > 1e-15 {
		t.Errorf("%v, want %v", theta[0], want)
	}
	if _, err := WithoutSecondMoment(config.Local{Beta1: 1}); err == nil {
		t.Error("beta1 of 1 is taken")
	}
}

// TestSpreadingChangesNothing: a batch's chunks on one worker or three, the same bits.
func TestSpreadingChangesNothing(t *testing.T) {
	m, c := smallPictures(t, 3, 300)
	workers := pool.New(3)
	defer workers.Close()
	var want []float64
	for _, one := range []Model{m, Spread(m, workers)} {
		l := learnerOf(t, one)
		theta := make([]float64, m.Parameters())
		m.Initialise(theta, stream("start"))
		p := Pass{StepSize: 0.5, Count: 3, Step: Step{Divisor: 300, Paid: paidSteps(t, 0.4, 0.1, mech.Randomness{Keyed: stream("noise")})}}
		if err := l.Train(theta, c, &p); err != nil {
			t.Fatal(err)
		}
		out, _, err := l.Outputs(theta, theta, c)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = out
		} else if !slices.Equal(out, want) {
			t.Error("another number of workers, another result")
		}
	}
}

// BenchmarkClipRules is a private step on a batch of 512 by every clip rule, taking turns,
// with half of the examples beyond the clip, where the two sums of online cost most.
func BenchmarkClipRules(b *testing.B) {
	rules := map[string]mech.ClipRule{
		"online": {Signal: mech.SignalDirections, GradientNoise: 1.01, Rate: 1e-9, StepRate: 1e-9}, "quantile": {Signal: mech.SignalCount, GradientNoise: 1.01, Rate: 1e-9, Quantile: 0.5},
	}
	names := []string{"fixed", "online", "quantile"}
	for _, network := range []string{"mnist", "autoencoder", "agnews"} {
		b.Run(network, func(b *testing.B) {
			var passes []*onePass
			for _, name := range names {
				p := newPass(b, network, "private", 512)
				norms := make([]float64, 0, 512)
				g := make([]float64, len(p.theta))
				for i := range 64 {
					if err := p.learner.Gradient(g, p.theta, p.client, []int{i}, &Step{}); err != nil {
						b.Fatal(err)
					}
					norm, _ := mech.Norm(g)
					norms = append(norms, norm)
				}
				slices.Sort(norms)
				rule := mech.StepRule{Clip: norms[32], Noise: 1, Sampling: event.Shuffle, Batch: 512, Examples: 512, Rate: 1, Clipping: rules[name]}
				p.Paid = sampledSteps(b, rule, stream("batches"), mech.Randomness{Keyed: stream("noise")})
				p.step(b)
				passes = append(passes, p)
			}
			took := make([][]float64, len(names))
			for b.Loop() {
				for i, p := range passes {
					took[i] = append(took[i], p.timed(b))
				}
			}
			ratios := func(i int) float64 {
				var r []float64
				for j, t := range took[i] {
					r = append(r, t/took[0][j])
				}
				return median(r)
			}
			b.ReportMetric(ratios(1), "online/fixed")
			b.ReportMetric(ratios(2), "quantile/fixed")
		})
	}
}
