//go:build linux

package cuda_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/cuda"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// paid are steps that somebody has paid for, with batches and noise that follow from a seed:
// the same on every call.
func paid(t testing.TB, rule mech.StepRule) *mech.Steps {
	return paidWith(t, rule, func(family rng.Family) mech.Randomness { return mech.Randomness{Keyed: family.Stream(0, 1)} })
}

func paidWith(t testing.TB, rule mech.StepRule, noise func(rng.Family) mech.Randomness) *mech.Steps {
	t.Helper()
	p, err := mech.NewPaid(event.Release{
		Unit: event.UnitExample, Relation: event.AddRemove, Trust: event.TrustLocal, Claim: event.ClaimProved,
		What: event.Repeated{Times: 1 << 20, Of: rule.Event(event.ClaimProved)},
	})
	if err != nil {
		t.Fatal(err)
	}
	family := rng.NewFamily(7, "a device's pass")
	s := new(mech.Steps)
	if err := s.Open(p, rule, mech.NewEntropy(family.Stream(0, 0)), noise(family)); err != nil {
		t.Fatal(err)
	}
	return s
}

// Parameters that stay on a device go where the processor takes them: with every optimiser
// and every clip rule, noise and all, for the noise is the same.
func TestStayingParametersGoTheSameWay(t *testing.T) {
	cudatest.Use(t)
	shape := data.Shape{Height: 6, Width: 6, Classes: 4}
	// Tanh has no kink; above 2^14 parameters noise follows from a key.
	large := layers{{Kind: "conv", Channels: 4, Kernel: 2}, {Kind: "tanh"}, {Kind: "conv", Channels: 12, Kernel: 2}, {Kind: "tanh"}, {Kind: "linear", Units: 100}, {Kind: "tanh"}, {Kind: "linear", Units: 4}}
	small := layers{{Kind: "linear", Units: 8}, {Kind: "tanh"}, {Kind: "linear", Units: 4}}
	online := mech.ClipRule{Signal: mech.SignalDirections, GradientNoise: 1.01, Rate: 0.05, StepRate: 0.05}
	quantile := mech.ClipRule{Signal: mech.SignalCount, GradientNoise: 1.01, Rate: 0.3, Quantile: 0.5}
	pull := model.Pull{Slope: 0.3}
	for name, v := range map[string]struct {
		layers layers
		local  config.Local
		wosm   bool
		rule   *mech.StepRule // nil: epochs of a shuffled order
		clip   float64
		pull   *model.Pull
	}{
		"plain":                    {layers: small, local: config.Local{Epochs: 2, Batch: 7, Step: 0.3}},
		"all at once, momentum":    {layers: small, local: config.Local{Epochs: 4, Step: 0.3, Optimiser: "momentum", Momentum: 0.7}},
		"adam, clipped":            {layers: small, local: config.Local{Epochs: 2, Batch: 9, Step: 0.02, Optimiser: "adam", Beta1: 0.8, Beta2: 0.9}, clip: 0.2},
		"adamw, pulled":            {layers: small, local: config.Local{Epochs: 2, Batch: 9, Step: 0.02, Optimiser: "adamw", Beta1: 0.8, Beta2: 0.9, WeightDecay: 0.1}, pull: &pull},
		"private, few parameters":  {layers: small, local: config.Local{Step: 0.3}, rule: &mech.StepRule{Clip: 0.2, Noise: 0.5}, pull: &pull},
		"private":                  {layers: large, local: config.Local{Step: 0.3}, rule: &mech.StepRule{Clip: 0.2, Noise: 0.01}},
		"private, quantile":        {layers: large, local: config.Local{Step: 0.3}, rule: &mech.StepRule{Clip: 0.2, Noise: 0.01, Batch: 10, Clipping: quantile}},
		"private, online":          {layers: large, local: config.Local{Step: 0.3}, rule: &mech.StepRule{Clip: 1.3, Noise: 0.05, Clipping: online}},
		"private, no second means": {layers: large, local: config.Local{Step: 0.02, Beta1: 0.8}, wosm: true, rule: &mech.StepRule{Clip: 0.2, Noise: 0.01}},
	} {
		t.Run(name, func(t *testing.T) {
			m, start := build(t, shape, "cross-entropy", v.layers)
			c := client(shape, 40, rand.New(rand.NewPCG(3, 3)))
			// train makes two passes, the second of which goes on from the first.
			train := func(m model.Model) (theta []float64, memory *model.Memory, trace mech.StepTrace) {
				p, err := model.NewPass(v.local, 1)
				if err != nil {
					t.Fatal(err)
				}
				if v.wosm {
					if p.Optimiser, err = model.WithoutSecondMoment(v.local); err != nil {
						t.Fatal(err)
					}
				}
				theta, memory = append([]float64(nil), start...), new(model.Memory)
				p.Memory, p.Clip, p.Divisor, p.Count = memory, v.clip, 10, 8
				family := rng.NewFamily(1, "order")
				p.Shuffle = family.Stream(0, 0)
				if v.pull != nil {
					p.Pull = *v.pull
					p.Pull.Offset = make([]float64, len(theta))
					for i := range p.Pull.Offset {
						p.Pull.Offset[i] = 0.1 * math.Sin(float64(i))
					}
				}
				l := learner(t, m)
				if v.rule != nil {
					rule := *v.rule
					rule.Sampling, rule.Rate = event.Poisson, 0.25
					p.Paid = paid(t, rule)
					p.Paid.Watch(&trace)
				}
				for range 2 {
					if err := l.Train(theta, c, &p); err != nil {
						t.Fatal(err)
					}
					if p.Paid != nil {
						p.Paid.Save(&memory.Clip)
					}
				}
				return theta, memory, trace
			}
			want, remembered, seen := train(m)
			got, there, seenThere := train(model.On(m, open(t, m, 6)))
			// One way's length is what the other's distance is measured by: what is forgotten or
			// done twice is a large part of it.
			moved := make([]float64, len(want))
			for i := range moved {
				moved[i] = want[i] - start[i]
			}
			for i := range got {
				got[i] -= start[i]
			}
			if d := apart(got, moved); d > 2e-4 {
				t.Errorf("parameters are %v of their way apart", d)
			}
			if v.rule != nil && v.rule.Clipping.Signal == mech.SignalDirections && (seen.Inside == 0 || seen.Beyond == 0) {
				t.Errorf("%d examples lie within the clip and %d beyond it: both are needed", seen.Inside, seen.Beyond)
			}
			if seen != seenThere {
				t.Errorf("seen were %+v, on the processor %+v", seenThere, seen)
			}
			if d := math.Abs(there.Clip.Clip-remembered.Clip.Clip) + math.Abs(there.Clip.Pace-remembered.Clip.Pace); d > 1e-6 || there.Moves != remembered.Moves || there.Clip.Steps != remembered.Clip.Steps {
				t.Errorf("remembered are clip %v, pace %v, %d moves, %d steps; on the processor %v, %v, %d, %d", there.Clip.Clip, there.Clip.Pace, there.Moves, there.Clip.Steps,
					remembered.Clip.Clip, remembered.Clip.Pace, remembered.Moves, remembered.Clip.Steps)
			}
			for _, pair := range [][2][]float64{{there.First, remembered.First}, {there.Second, remembered.Second}, {wide(there.Clip.Gradient), wide(remembered.Clip.Gradient)}, {wide(there.Clip.Direction), wide(remembered.Clip.Direction)}} {
				if len(pair[0]) != len(pair[1]) {
					t.Fatalf("remembered are %d values, on the processor %d", len(pair[0]), len(pair[1]))
				}
				if len(pair[0]) > 0 && !(apart(pair[0], pair[1]) < 1e-3) {
					t.Errorf("what is remembered is %v of its length apart", apart(pair[0], pair[1]))
				}
			}
		})
	}
}

func wide(v []float32) []float64 {
	to := make([]float64, len(v))
	for i, x := range v {
		to[i] = float64(x)
	}
	return to
}

// Networks that train at the same time, on one device, do not meet: each goes where it goes
// alone, to the last bit.
func TestNetworksAtOnce(t *testing.T) {
	cudatest.Use(t)
	shape := data.Shape{Height: 6, Width: 6, Classes: 4}
	m, start := build(t, shape, "cross-entropy", layers{{Kind: "conv", Channels: 4, Kernel: 2}, {Kind: "tanh"}, {Kind: "linear", Units: 4}})
	train := func(seed uint64) ([]float64, error) {
		p, err := model.PlanOf(m)
		if err != nil {
			return nil, err
		}
		d, err := cuda.Open(0, p)
		if err != nil {
			return nil, err
		}
		l, err := model.On(m, d).Learner()
		if err != nil {
			return nil, err
		}
		theta := append([]float64(nil), start...)
		family := rng.NewFamily(seed, "order")
		pass := model.Pass{Epochs: 3, Batch: 5, Shuffle: family.Stream(0, 0), StepSize: 0.1}
		return theta, errors.Join(l.Train(theta, client(shape, 20, rand.New(rand.NewPCG(seed, 3))), &pass), d.Close())
	}
	type outcome struct {
		theta []float64
		err   error
	}
	const many = 10 // more than a program has conversations
	alone, together := make([]outcome, many), make([]outcome, many)
	for i := range many {
		alone[i].theta, alone[i].err = train(uint64(i))
	}
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() { together[i].theta, together[i].err = train(uint64(i)) })
	}
	all.Wait()
	for i := range many {
		if alone[i].err != nil || together[i].err != nil {
			t.Fatal(alone[i].err, together[i].err)
		}
		if !slices.Equal(alone[i].theta, together[i].theta) {
			t.Errorf("network %d trains otherwise beside others", i)
		}
		if i > 0 && slices.Equal(alone[i].theta, alone[0].theta) {
			t.Errorf("network %d is network 0", i)
		}
	}
}

// trained is a network that is trained on a device of its own, by a few steps with noise or, with no rule,
// by a few epochs without.
type trained struct {
	m     model.Model
	start []float64
	c     *data.Client
	rule  mech.StepRule
	steps int
	batch int // its size, about
	chunk int
}

func trainedTexts(t *testing.T, steps, batch int) trained {
	shape := data.Shape{Features: 64, Vocabulary: 128}
	m, start := buildText(t, shape, config.Model{Kind: "transformer", Blocks: 1, Width: 128, Heads: 4})
	return trained{m, start, examplesOf(shape, 64), mech.StepRule{Clip: 0.2, Noise: 0.5, Sampling: event.Poisson, Rate: float64(batch) / 64}, steps, batch, 32}
}

func trainedRows(t *testing.T, name string, rule mech.StepRule, steps int) trained {
	n := ended[name]
	m, start := buildBy(t, n.shape, n.local, n.layers)
	return trained{m, start, examplesFor(n.shape, 40, rand.New(rand.NewPCG(3, 3))), rule, steps, 10, 6}
}

func (n *trained) train(paid *mech.Steps) ([]float64, error) {
	plan, err := model.PlanOf(n.m)
	if err != nil {
		return nil, err
	}
	plan.Chunk = n.chunk
	d, err := cuda.Open(0, plan)
	if err != nil {
		return nil, err
	}
	l, err := model.On(n.m, d).Learner()
	if err != nil {
		return nil, err
	}
	theta := slices.Clone(n.start)
	p := model.Pass{Step: model.Step{Paid: paid, Divisor: n.batch}, Count: n.steps, StepSize: 0.1}
	if paid == nil {
		family := rng.NewFamily(7, "a plain pass")
		p = model.Pass{Epochs: n.steps, Batch: n.batch, Shuffle: family.Stream(0, 0), StepSize: 0.1}
	}
	return theta, errors.Join(l.Train(theta, n.c, &p), d.Close())
}

// TestTrainedInAnyOrder: what is trained, with privacy and without, has the same bits whichever of two
// streams is behind, as far as it may be, and where the driver does not let kernels read this program's
// memory.
func TestTrainedInAnyOrder(t *testing.T) {
	cudatest.Use(t)
	if cudatest.OnDevice() {
		t.Skip("a device has its own order")
	}
	shape := data.Shape{Height: 6, Width: 6, Classes: 4}
	m, start := build(t, shape, "cross-entropy", layers{{Kind: "conv", Channels: 4, Kernel: 2}, {Kind: "tanh"}, {Kind: "conv", Channels: 12, Kernel: 2}, {Kind: "tanh"}, {Kind: "linear", Units: 100}, {Kind: "tanh"}, {Kind: "linear", Units: 4}})
	rule := mech.StepRule{Clip: 0.2, Noise: 0.5, Sampling: event.Poisson, Rate: 0.25}
	counted := rule
	counted.Batch, counted.Clipping = 10, mech.ClipRule{Signal: mech.SignalCount, GradientNoise: 1.01, Rate: 0.3, Quantile: 0.5}
	pictures := client(shape, 40, rand.New(rand.NewPCG(3, 3)))
	for name, n := range map[string]trained{
		"pictures":           {m, start, pictures, rule, 12, 10, 6},
		"pictures, quantile": {m, start, pictures, counted, 12, 10, 6},
		"pictures, plain":    {m, start, pictures, mech.StepRule{}, 3, 10, 6},
		"texts":              trainedTexts(t, 4, 2),
		"rows":               trainedRows(t, "rows of classes, with a head", rule, 12),
		"rows, one output":   trainedRows(t, "rows of two classes, one output", rule, 12),
		"rows, plain":        trainedRows(t, "rows of two classes, one output", mech.StepRule{}, 3),
	} {
		t.Run(name, func(t *testing.T) {
			var want []float64
			for _, settings := range [][2]string{{"COTERIE_EMU_ORDER", "forward"}, {"COTERIE_EMU_ORDER", "backward"}, {"COTERIE_EMU_ORDER", "ahead"}, {"COTERIE_EMU_ORDER", "late"}, {"COTERIE_EMU_FAIL", "mapping"}} {
				t.Setenv(settings[0], settings[1])
				if name == "texts" { // with few, kernels are started one by one
					t.Setenv("COTERIE_EMU_PROCESSORS", "1")
				}
				var steps *mech.Steps
				if n.rule.Clip > 0 {
					steps = paid(t, n.rule)
				}
				got, err := n.train(steps)
				if err != nil {
					t.Fatal(settings, err)
				}
				if want == nil {
					want = got
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: other bits", settings)
				}
			}
		})
	}
}

// TestTrainedBesideOthers: what is trained beside others that come and go, each with a device of its own in
// the same helper, has the bits of what is trained alone: what one waits for is in nobody's way.
func TestTrainedBesideOthers(t *testing.T) {
	cudatest.Use(t)
	rounds, steps, batch := 1, 5, 3
	if cudatest.OnDevice() {
		rounds, steps, batch = 6, 60, 16 // some sizes of batches are recorded meanwhile
	}
	n := trainedTexts(t, steps, batch)
	want, err := n.train(paid(t, n.rule))
	if err != nil {
		t.Fatal(err)
	}
	if !cudatest.OnDevice() { // others have other orders
		t.Setenv("COTERIE_EMU_PROCESSORS", "1") // with few, kernels are started one by one
		t.Setenv("COTERIE_EMU_ORDER", "ahead")  // and what others wait for comes late
		t.Setenv("COTERIE_CUDA_TEST", t.Name())
	}
	var all sync.WaitGroup
	for range 4 {
		var own []*mech.Steps
		for range rounds {
			own = append(own, paid(t, n.rule))
		}
		all.Go(func() {
			for _, paid := range own {
				got, err := n.train(paid)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("others' bits, or none: %v", err)
				}
			}
		})
	}
	all.Wait()
}
