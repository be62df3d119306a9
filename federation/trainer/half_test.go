package trainer

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
)

type purseStub struct {
	err   error
	asked []event.Release
}

func (p *purseStub) Reserve(_ int, r event.Release) error {
	p.asked = append(p.asked, r)
	return p.err
}

const attestedRelease = `{"unit":"example","relation":"add-remove","claim":"proved",` +
	`"trust":"participant adds the noise; the server is not trusted","what":{"kind":"gaussian","noise":2}}`

func protected(name, mode string, args ...string) Spec {
	s := player(name, args...)
	s.Mode, s.Clip, s.Noise = mode, 0.5, 1.5
	s.Steps, s.Rate, s.Batch, s.Step = 2, 1, 10, 0.25
	if mode == ModeAttested {
		s.Release = attestedRelease
	}
	return s
}

func newHalf(t *testing.T, s Spec, n int) *Half {
	t.Helper()
	tr, err := Start(context.Background(), s, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	h, err := NewHalf(tr, config.Local{Epochs: 1, Step: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestReleaseSaysWhatIsProtected: the event follows from the mode and the settings;
// nobody types a sensitivity.
func TestReleaseSaysWhatIsProtected(t *testing.T) {
	for mode, want := range map[string]event.Release{
		ModeUpdate: {Unit: event.UnitClient, Relation: event.ReplaceOne, Claim: event.ClaimProved, Trust: event.TrustLocal,
			What: event.Gaussian{Noise: 1.5}},
		ModePerExample: {Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Trust: event.TrustLocal,
			What: event.Repeated{Times: 2, Of: event.Sampled{Sampling: event.Poisson, Rate: 1, Of: event.Gaussian{Noise: 1.5}}}},
		ModeAttested: {Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Trust: event.TrustLocal,
			What: event.Gaussian{Noise: 2}},
	} {
		h := newHalf(t, protected("well", mode), 3)
		purse := &purseStub{}
		if err := h.Respond(4, ones(3), purse, make([]float64, 3)); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		if h.Release() != want || len(purse.asked) != 1 || purse.asked[0] != want {
			t.Errorf("%s: paid %+v, announced %+v, want %+v", mode, purse.asked, h.Release(), want)
		}
		if fails := strings.Contains(strings.Join(h.NotCovered(), "\n"), "fails on account of a single example"); fails != (mode == ModePerExample) {
			t.Errorf("%s: not covered %v", mode, h.NotCovered())
		}
		if h.Enforced() != (mode != ModeAttested) || len(h.NotCovered()) == 0 {
			t.Errorf("%s: enforced %v, not covered %v", mode, h.Enforced(), h.NotCovered())
		}
	}
}

func TestNothingLeavesUnpaid(t *testing.T) {
	refused := errors.New("used up")
	for _, mode := range []string{ModeUpdate, ModePerExample, ModeAttested} {
		h := newHalf(t, protected("well", mode), 3)
		out := make([]float64, 3)
		if err := h.Respond(0, ones(3), &purseStub{err: refused}, out); !errors.Is(err, refused) {
			t.Errorf("%s: %v", mode, err)
		}
		if err := h.Respond(0, ones(3), nil, out); err == nil {
			t.Errorf("%s: released without a purse", mode)
		}
		if err := h.Respond(0, ones(6), &purseStub{}, out); err == nil {
			t.Errorf("%s: two models were taken for one", mode)
		}
		if !slices.Equal(out, make([]float64, 3)) {
			t.Errorf("%s: %v left without being paid for", mode, out)
		}
	}
}

// TestFailuresYieldTheFixedUpdate: whatever a trainer does, the round is paid for once
// and ends in a release: the model as it came, with noise. The owner is told why.
func TestFailuresYieldTheFixedUpdate(t *testing.T) {
	for _, c := range []struct{ name, mode, want string }{
		{"NaN", ModeUpdate, "is NaN"},
		{"dies", ModeUpdate, "exit status 7"},
		{"dies", ModePerExample, "exit status 7"},
		{"one value too many", ModePerExample, "announced"},
		{"mixes examples", ModePerExample, "it depends on other examples"},
		{"dies", ModeAttested, "exit status 7"},
	} {
		spec := protected(c.name, c.mode)
		spec.Noise = 1e-6
		h := newHalf(t, spec, 3)
		purse, out := &purseStub{}, make([]float64, 3)
		if err := h.Respond(0, ones(3), purse, out); err != nil || len(purse.asked) != 1 {
			t.Errorf("%s, %s: %v, paid %v", c.name, c.mode, err, purse.asked)
		}
		for i, v := range out {
			if noise := v - ones(3)[i]; math.Abs(noise) > 1e-4 || noise == 0 && c.mode != ModeAttested {
				t.Errorf("%s, %s: value %d is %v, want the model's %v and a little noise", c.name, c.mode, i, v, ones(3)[i])
			}
		}
		if err := h.Failure(); !errors.Is(err, ErrTrainer) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: the reason is %v", c.name, c.mode, err)
		}
		if err := h.Failure(); err != nil {
			t.Errorf("%s, %s: told twice: %v", c.name, c.mode, err)
		}
	}
}

// TestOneBadGradientCountsAsZero, and the others stay: example 30 of 50 is not finite.
func TestOneBadGradientCountsAsZero(t *testing.T) {
	spec := protected("NaN in one gradient", ModePerExample)
	spec.Noise, spec.Steps, spec.Step, spec.Batch, spec.Clip = 1e-6, 1, 1, 1, 1
	h := newHalf(t, spec, 3)
	out := make([]float64, 3)
	if err := h.Respond(0, make([]float64, 3), &purseStub{}, out); err != nil {
		t.Fatal(err)
	}
	// The gradient of example k is (k, k, k), clipped to length 1; that of 0 is 0. So 48
	// of 50 count.
	for i, v := range out {
		if want := -48 / math.Sqrt(3); math.Abs(v-want) > 1e-3 {
			t.Errorf("value %d is %v, want %v", i, v, want)
		}
	}
	if err := h.Failure(); err != nil {
		t.Error(err)
	}
}

// direction is v scaled to a norm.
func direction(v []float64, norm float64) []float64 {
	var sum float64
	for _, x := range v {
		sum += x * x
	}
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = x * norm / math.Sqrt(sum)
	}
	return out
}

// expected is what the played trainer's release is without noise.
func expected(h *Half, base []float64) []float64 {
	out := slices.Clone(base)
	if h.spec.Mode == ModeUpdate { // the update is theta itself
		for i, d := range direction(base, h.spec.Clip) {
			out[i] += d
		}
		return out
	}
	for range h.spec.Steps {
		total := make([]float64, len(out))
		for example := range 50 {
			g := slices.Clone(out)
			for i := range g {
				g[i] += float64(example)
			}
			for i, d := range direction(g, h.spec.Clip) {
				total[i] += d
			}
		}
		for i, s := range total {
			out[i] -= h.spec.Step / float64(h.spec.Batch) * s
		}
	}
	return out
}

// TestClippingIsWhole: however large the update or a gradient, the release moves by
// what the clip allows. The noise is made tiny for it.
func TestClippingIsWhole(t *testing.T) {
	for _, mode := range []string{ModeUpdate, ModePerExample} {
		s := protected("well", mode)
		s.Noise = 1e-6
		h := newHalf(t, s, 100)
		base, out := ones(100), make([]float64, 100)
		if err := h.Respond(0, base, &purseStub{}, out); err != nil {
			t.Fatal(err)
		}
		for i, want := range expected(h, base) {
			if math.Abs(out[i]-want) > 1e-4 {
				t.Fatalf("%s: coordinate %d is %v, want %v", mode, i, out[i], want)
			}
		}
	}
}

// noiseZ is how far the release's noise is from the standard deviation sd, in
// standard errors of its estimate.
func noiseZ(t *testing.T, h *Half, n int, sd float64) float64 {
	t.Helper()
	base, out := ones(n), make([]float64, n)
	if err := h.Respond(0, base, &purseStub{}, out); err != nil {
		t.Fatal(err)
	}
	var sum float64
	for i, want := range expected(h, base) {
		z := (out[i] - want) / sd
		sum += z * z
	}
	return (sum/float64(n) - 1) / math.Sqrt(2/float64(n))
}

// TestNoiseHasItsScale: noise is from system entropy, so this raises a false alarm
// once in a million runs; noise a tenth smaller is caught with near certainty.
func TestNoiseHasItsScale(t *testing.T) {
	const n, z = testParameters, 4.8916
	for _, mode := range []string{ModeUpdate, ModePerExample} {
		s := protected("well", mode)
		s.Steps = 1
		sd := s.Noise * s.Clip
		if mode == ModePerExample {
			sd *= s.Step / float64(s.Batch)
		}
		if got := noiseZ(t, newHalf(t, s, n), n, sd); math.Abs(got) > z {
			t.Errorf("%s: noise is %v standard errors off", mode, got)
		}
		planted := s
		planted.Noise *= 0.9
		if got := noiseZ(t, newHalf(t, planted, n), n, sd); math.Abs(got) < z {
			t.Errorf("%s: a tenth less noise went unnoticed (%v)", mode, got)
		}
	}
}
