package protect

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
	_ "github.com/coterie-fl/coterie/fl/method"
	"github.com/coterie-fl/coterie/model"
)

func TestPaperModeNoise(t *testing.T) {
	// Algorithm 2: |noise| has mean nu*|delta|, and the client is charged n/nu.
	run := config.Default("synthetic", "group-private", "paper")
	f := data.Synthetic(run.Data, 1)
	g := fltest.New(t, run, 100)
	bare := config.Default("synthetic", "ifca", "paper")
	exact, _ := fltest.Respond(t, fltest.New(t, bare, 100), fltest.TwoHypotheses(), &fl.Participant{Data: &f.Train[0]})
	delta := math.Hypot(exact[0]-4, exact[1]-5)
	var sum float64
	const rounds = 20_000
	p := fl.Participant{Data: &f.Train[0]}
	for r := range rounds {
		s := fltest.TwoHypotheses()
		s.Round = r
		out, _ := fltest.Respond(t, g, s, &p)
		sum += math.Hypot(out[0]-exact[0], out[1]-exact[1])
	}
	// |noise| ~ Gamma(2, nu*|delta|/2): sd nu*|delta|/sqrt(2); 4.9 standard errors.
	mean, want := sum/rounds, 5*delta
	if math.Abs(mean-want) > 4.9*want/math.Sqrt(2*rounds) {
		t.Errorf("mean length of the noise %v, want nu*|delta| = %v", mean, want)
	}
	if got := p.Account.Epsilon(); got != rounds*2/5 {
		t.Errorf("%d releases cost %v, want exactly %v", rounds, got, rounds*0.4)
	}
}

func TestSoundModeClipsToThePublicRadius(t *testing.T) {
	run := config.Default("synthetic", "group-private", "sound")
	run.Privacy.Radius, run.Privacy.RadiusDecay = 0.2, 0.5
	g := fltest.New(t, run, 100)
	f := data.Synthetic(run.Data, 1)
	s := fltest.TwoHypotheses()
	s.Round = 2
	b, err := g.Broadcast(s)
	if err != nil || b.Radius != 0.05 {
		t.Fatalf("radius of round 3 is %v, want 0.2*0.5^2 (%v)", b.Radius, err)
	}
	p := fl.Participant{Data: &f.Train[0]}
	fltest.Respond(t, g, s, &p)
	if got, want := p.Account.At(1), 2/(5*0.05); math.Abs(got-want) > 1e-12 {
		t.Errorf("epsilon per unit of distance %v, want n/(nu*C) = %v", got, want)
	}
	spread := math.Hypot(1, 8)
	if want := 2 / (5 * 0.05) * (2*0.05 + spread); math.Abs(p.Switch-want) > 1e-9 {
		t.Errorf("a switch costs %v, want epsilon*(2C + distance of the hypotheses) = %v", p.Switch, want)
	}
}

// TestReleaseTellsNothingButItsVector: two clients with the same rows, whatever
// their number, release the same vector from the same noise.
func TestReleaseTellsNothingButItsVector(t *testing.T) {
	run := config.Default("synthetic", "ifca", "paper")
	f := data.Synthetic(run.Data, 1)
	double := data.Rows{Features: 2, X: slices.Concat(f.Train[0].X, f.Train[0].X), Y: slices.Concat(f.Train[0].Y, f.Train[0].Y)}
	g := fltest.New(t, run, 100)
	a, _ := fltest.Respond(t, g, fltest.TwoHypotheses(), &fl.Participant{Data: &f.Train[0]})
	b, _ := fltest.Respond(t, g, fltest.TwoHypotheses(), &fl.Participant{Data: &data.Client{Rows: double}})
	if math.Abs(a[0]-b[0]) > 1e-12 || math.Abs(a[1]-b[1]) > 1e-12 {
		t.Errorf("twice the rows give %v instead of %v: the size shows", b, a)
	}
}

func TestCeilingStopsAClientRightBeforeItsRelease(t *testing.T) {
	run := config.Default("synthetic", "group-private", "paper")
	ceiling := 2.4 // six releases of 0.4
	run.Privacy.Ceiling = &ceiling
	g := fltest.New(t, run, 100)
	p := fl.Participant{Data: &data.Synthetic(run.Data, 1).Train[0]}
	for r := range 10 {
		s := fltest.TwoHypotheses()
		s.Round = r
		out, released := fltest.Respond(t, g, s, &p)
		if released != (r < 6) {
			t.Errorf("release %d: %v", r+1, released)
		}
		if !released && (out[0] != 0 || out[1] != 0) {
			t.Errorf("a client that declined left %v", out)
		}
	}
	if got := p.Account.Epsilon(); got > 2.4*(1+1e-12) || p.Account.Releases != 6 {
		t.Errorf("spent %v in %d releases", got, p.Account.Releases)
	}
}

// TestDivergenceIsAFixedReleaseAndNamed: training that leaves the finite numbers ends
// in the chosen hypothesis with the noise that was paid for; the participant is told,
// and a simulation stops.
func TestDivergenceIsAFixedReleaseAndNamed(t *testing.T) {
	for _, c := range []struct{ kind, mode, noise string }{
		{"ifca", "paper", "simulated"}, {"group-private", "paper", "simulated"}, {"group-private", "sound", "simulated"},
		{"group-private", "paper", fl.NoiseSeeded}, {"group-private", "sound", fl.NoiseSeeded},
	} {
		run := config.Default("synthetic", c.kind, c.mode)
		run.Algorithm.Local.Step = 1e308
		run.Algorithm.Local.Epochs = 10
		run.Privacy.Noise = c.noise
		if c.mode == "sound" {
			run.Privacy.Radius = 1e-6
		}
		g := fltest.New(t, run, 100)
		b, err := g.Broadcast(fltest.TwoHypotheses())
		if err != nil {
			t.Fatal(err)
		}
		p := &fl.Participant{ID: 4, Data: &data.Synthetic(run.Data, 1).Train[0], Purse: &fltest.Purse{}}
		out := make([]float64, 2)
		released, err := g.Respond(new(fl.Worker), b, p, out)
		if !released || err != nil || len(p.Purse.(*fltest.Purse).Asked) != 1 {
			t.Errorf("%+v: released %v, %v", c, released, err)
		}
		if p.Mishap == nil || !strings.Contains(p.Mishap.Error(), "participant 4") || !strings.Contains(p.Mishap.Error(), "algorithm.local.step") {
			t.Errorf("%+v: the participant is told %v", c, p.Mishap)
		}
		near := math.Inf(1)
		for j := range 2 {
			near = min(near, math.Hypot(out[0]-b.Hypotheses[2*j], out[1]-b.Hypotheses[2*j+1]))
		}
		if !(near < 1e-3) || near == 0 && c.kind == "group-private" {
			t.Errorf("%+v: %v lies %v from the nearest hypothesis", c, out, near)
		}
		if released, err := fl.RespondOpenly(g, new(fl.Worker), b, p, out); released || err == nil {
			t.Errorf("%+v: a simulation goes on: %v, %v", c, released, err)
		}
	}
}

// TestPaperModeNeverFailsOnAnUpdatesLength: noise is as wide as the update is long, and
// a length beyond exact integers is cut to a public one.
func TestPaperModeNeverFailsOnAnUpdatesLength(t *testing.T) {
	for _, n := range []int{2, 40, 1_200_000} {
		run := config.Default("synthetic", "group-private", "paper")
		run.Privacy.Noise = fl.NoiseSeeded
		g, err := fl.New(run, model.Linear{Features: n}, 100)
		if err != nil {
			t.Fatal(err)
		}
		guard, err := g.Protection().Guard()
		if err != nil {
			t.Fatal(err)
		}
		u := guard.(*updateGuard)
		for _, length := range []float64{0, 1e-300, 1e-9, 1, 1e12, 1e150, 1e307} {
			delta := make([]float64, n)
			delta[0] = length
			u.delta = delta
			p := new(fl.Participant)
			base, out := make([]float64, n), make([]float64, n)
			if err := u.boundLayers(new(fl.Broadcast), p); err != nil {
				t.Fatalf("%d values of length %v: %v", n, length, err)
			}
			if err := u.release(new(fl.Broadcast), p, out, base); err != nil {
				t.Fatalf("%d values of length %v: %v", n, length, err)
			}
			if _, err := mech.Norm(out); err != nil || p.Mishap != nil {
				t.Errorf("%d values of length %v: %v, %v", n, length, err, p.Mishap)
			}
		}
	}
}

func TestExactNoiseStaysOnThePublicLattice(t *testing.T) {
	for _, mode := range []string{"paper", "sound"} {
		run := config.Default("synthetic", "group-private", mode)
		run.Privacy.Noise = "exact"
		g := fltest.New(t, run, 100)
		p := fl.Participant{Data: &data.Synthetic(run.Data, 1).Train[0]}
		s := fltest.TwoHypotheses()
		s.Hypotheses[0] += 1e-13 // below the lattice
		out, ok := fltest.Respond(t, g, s, &p)
		u := g.Protection().(*update)
		l, err := u.lattice(&u.layers[0], run.Privacy.Radius)
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		for _, v := range slices.Concat(out, s.Hypotheses) {
			if v != math.Trunc(v/l.Step)*l.Step {
				t.Errorf("%s: %v is not on the lattice of step %v", mode, v, l.Step)
			}
		}
		if got := p.Account.Epsilon(); !(got > 0.4 && got < 0.41) {
			t.Errorf("%s: an exact release costs %v, want 0.4 and the lattice's slack", mode, got)
		}
		again, _ := fltest.Respond(t, g, s, &p)
		if slices.Equal(again, out) {
			t.Errorf("%s: the same noise twice", mode)
		}
	}
}
