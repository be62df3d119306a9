package audit

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// TestPapersNetworkHasItsSize: errata 1, 1,206,590 parameters with 62 classes.
func TestPapersNetworkHasItsSize(t *testing.T) {
	for n, want := range map[string]int{"papers": 1206590, "lenet": 312 + 2*3612 + 588*62 + 62, "dense": 785*128 + 129*62} {
		network, err := NamedNetwork(n, 62)
		if err != nil {
			t.Fatal(err)
		}
		net, err := network.build()
		if err != nil {
			t.Fatal(err)
		}
		if net.Parameters() != want {
			t.Errorf("%s has %d parameters, want %d", n, net.Parameters(), want)
		}
	}
	if _, err := NamedNetwork("resnet", 62); err == nil {
		t.Error("an unknown network is accepted")
	}
}

// TestServerSeesTheGradient: without noise the update is the gradient, found here
// by differences of the loss.
func TestServerSeesTheGradient(t *testing.T) {
	x, label, r, v := sent(t, small(), "cross-entropy", 0, 2)
	g, err := r.Gradient()
	if err != nil {
		t.Fatal(err)
	}
	ex := model.Examples[float64]{X: x, Labels: []int{label}}
	theta := append([]float64(nil), v.theta...)
	loss := make([]float64, 1)
	for _, i := range []int{0, 29, 30, 100, len(theta) - 1} {
		const h = 1e-6
		theta[i] += h
		if err := v.engine.Losses(loss, theta, ex, one); err != nil {
			t.Fatal(err)
		}
		up := loss[0]
		theta[i] -= 2 * h
		if err := v.engine.Losses(loss, theta, ex, one); err != nil {
			t.Fatal(err)
		}
		theta[i] += h
		near(t, "gradient", g[i], (up-loss[0])/(2*h), 1e-6)
	}
}

// noiseRatios are, for every layer, the noise's mean length over nu times the
// update's length.
func noiseRatios(t *testing.T, s Sanitiser, draws int) (ratios []float64, sizes []int) {
	t.Helper()
	x, label, bare, v := sent(t, small(), "cross-entropy", 0, 3)
	spans := model.LayerSpans(v.net.Views())
	family := rng.NewFamily(5, "test noise")
	ratios = make([]float64, len(spans))
	for draw := range draws {
		r, err := v.Send(x, label, s, family.Stream(draw, 0))
		if err != nil {
			t.Fatal(err)
		}
		for l, p := range spans {
			var noise, update float64
			for i := p.From; i < p.To; i++ {
				noise += math.Pow(r.After[i]-bare.After[i], 2)
				update += math.Pow(bare.After[i]-bare.Before[i], 2)
			}
			ratios[l] += math.Sqrt(noise/update) / (s.Multiplier * float64(draws))
		}
	}
	for _, p := range spans {
		sizes = append(sizes, p.To-p.From)
	}
	return ratios, sizes
}

// TestEveryLayerHasItsOwnRadius: thesis 001, section 2.5.1. A layer's noise has
// length ~ Gamma(n, nu r/n): mean nu r, standard deviation nu r/sqrt(n). The
// false-alarm rate is 1e-6 a layer; noise on the whole vector is told apart.
func TestEveryLayerHasItsOwnRadius(t *testing.T) {
	const z, draws = 4.8916, 400 // two-sided 1e-6
	fits := func(s Sanitiser) bool {
		ratios, sizes := noiseRatios(t, s, draws)
		for l, r := range ratios {
			if math.Abs(r-1) > z/math.Sqrt(float64(sizes[l]*draws)) {
				return false
			}
		}
		return true
	}
	if !fits(Sanitiser{Multiplier: 3}) {
		t.Error("the noise of a layer does not follow its own length")
	}
	if fits(Sanitiser{Multiplier: 3, Whole: true}) {
		t.Error("noise on the whole vector is taken for noise by layer")
	}
}

func TestReleaseNamesItsEvents(t *testing.T) {
	_, _, r, v := sent(t, small(), "cross-entropy", 2, 4)
	if len(r.Events) != 3 {
		t.Fatalf("%d events for 3 layers", len(r.Events))
	}
	n := 0
	for _, e := range r.Events {
		n += e.Dimension
		if e.NoiseMultiplier != 2 || !(e.Radius > 0) {
			t.Errorf("%+v", e)
		}
	}
	if n != len(v.theta) {
		t.Errorf("the events cover %d of %d parameters", n, len(v.theta))
	}
}

func TestVictimRefusesBadInput(t *testing.T) {
	x, label, r, v := sent(t, small(), "cross-entropy", 0, 0)
	family := rng.NewFamily(1, "t")
	s := family.Stream(0, 0)
	hot := append([]float64(nil), x...)
	hot[0] = math.NaN()
	long := r.Update
	long.After = long.After[1:]
	still := r.Update
	still.Steps = 0
	for what, err := range map[string]error{
		"a label out of range": second(v.Send(x, 4, Sanitiser{}, s)),
		"a short picture":      second(v.Send(x[1:], label, Sanitiser{}, s)),
		"a picture with NaN":   second(v.Send(hot, label, Sanitiser{Multiplier: 1}, s)),
		"negative noise":       second(v.Send(x, label, Sanitiser{Multiplier: -1}, s)),
		"noise NaN":            second(v.Send(x, label, Sanitiser{Multiplier: math.NaN()}, s)),
		"no step":              second(NewVictim(small(), "cross-entropy", 0, 1)),
		"an unknown loss":      second(NewVictim(small(), "zero-one", 0.1, 1)),
		"a torn update":        second(long.Gradient()),
		"no steps":             second(still.Gradient()),
	} {
		if err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}
