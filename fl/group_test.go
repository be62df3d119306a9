package fl

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/model"
)

func newGroup(t *testing.T, run config.Run) *Group {
	t.Helper()
	shape, _ := data.ShapeOf(run.Data)
	m, err := model.Of(run, shape)
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewGroup(run, m)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// respond lets one client answer a broadcast of its own state.
func respond(t *testing.T, g *Group, s *State, p *Participant) (out []float64, released bool) {
	t.Helper()
	b, err := g.Broadcast(s)
	if err != nil {
		t.Fatal(err)
	}
	out = make([]float64, g.Model().Parameters())
	var w Worker
	released, err = g.Respond(&w, b, p, out)
	if err != nil {
		t.Fatal(err)
	}
	return out, released
}

func twoHypotheses() *State {
	return &State{Hypotheses: []float64{4, 5, 3, -3}, Idle: make([]int, 2)}
}

func TestClientTrainsTheHypothesisThatFits(t *testing.T) {
	run := config.Default("synthetic", "ifca", "paper")
	f := data.Synthetic(run.Data, 1)
	g := newGroup(t, run)
	for _, c := range []int{0, 99} { // one of each group
		p := Participant{ID: c, Data: &f.Train[c]}
		s := twoHypotheses()
		out, ok := respond(t, g, s, &p)
		base := s.Hypotheses[2*f.Train[c].Group:][:2]
		want := slices.Clone(base)
		l, err := g.model.Learner()
		if err != nil {
			t.Fatal(err)
		}
		pass := g.pass
		if err := l.Train(want, p.Data, &pass); err != nil {
			t.Fatal(err)
		}
		if !ok || !slices.Equal(out, want) {
			t.Errorf("client of group %d sends %v, one step from its hypothesis is %v", f.Train[c].Group, out, want)
		}
		if !math.IsInf(p.Account.Epsilon(), 1) {
			t.Errorf("a release without noise costs %v", p.Account.Epsilon())
		}
	}
}

func TestPaperModeNoise(t *testing.T) {
	// Algorithm 2: |noise| has mean nu*|delta|, and the client is charged n/nu.
	run := config.Default("synthetic", "group-private", "paper")
	f := data.Synthetic(run.Data, 1)
	g := newGroup(t, run)
	bare := config.Default("synthetic", "ifca", "paper")
	exact, _ := respond(t, newGroup(t, bare), twoHypotheses(), &Participant{Data: &f.Train[0]})
	delta := math.Hypot(exact[0]-4, exact[1]-5)
	var sum float64
	const rounds = 20_000
	p := Participant{Data: &f.Train[0]}
	for r := range rounds {
		s := twoHypotheses()
		s.Round = r
		out, _ := respond(t, g, s, &p)
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
	g := newGroup(t, run)
	f := data.Synthetic(run.Data, 1)
	s := twoHypotheses()
	s.Round = 2
	b, err := g.Broadcast(s)
	if err != nil || b.Radius != 0.05 {
		t.Fatalf("radius of round 3 is %v, want 0.2*0.5^2 (%v)", b.Radius, err)
	}
	p := Participant{Data: &f.Train[0]}
	respond(t, g, s, &p)
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
	g := newGroup(t, run)
	a, _ := respond(t, g, twoHypotheses(), &Participant{Data: &f.Train[0]})
	b, _ := respond(t, g, twoHypotheses(), &Participant{Data: &data.Client{Rows: double}})
	if math.Abs(a[0]-b[0]) > 1e-12 || math.Abs(a[1]-b[1]) > 1e-12 {
		t.Errorf("twice the rows give %v instead of %v: the size shows", b, a)
	}
}

func TestCeilingStopsAClientRightBeforeItsRelease(t *testing.T) {
	run := config.Default("synthetic", "group-private", "paper")
	ceiling := 2.4 // six releases of 0.4
	run.Privacy.Ceiling = &ceiling
	g := newGroup(t, run)
	p := Participant{Data: &data.Synthetic(run.Data, 1).Train[0]}
	for r := range 10 {
		s := twoHypotheses()
		s.Round = r
		out, released := respond(t, g, s, &p)
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

func TestRelocationAfterIdleRounds(t *testing.T) {
	run := config.Default("synthetic", "ifca", "paper")
	releases := Releases{Clients: []int{0, 1, 2}, Vectors: []float64{0, 0, 1, 0, 0, 3}}
	for _, empty := range []string{"relocate", "keep"} {
		run.Algorithm.Empty = empty
		g := newGroup(t, run)
		s := &State{Hypotheses: []float64{0, 0, 90, 90}, Idle: make([]int, 2)}
		for round := 1; round <= 3; round++ {
			out := g.Aggregate(s, releases)
			moved := round == 3 && empty == "relocate"
			if (out.Relocated == 1) != moved {
				t.Errorf("%s, round %d: %d hypotheses moved", empty, round, out.Relocated)
			}
			if want := []float64{0, 3}; moved && !slices.Equal(s.Hypotheses[2:], want) {
				t.Errorf("moved to %v, the farthest release is %v", s.Hypotheses[2:], want)
			}
			if !moved && s.Hypotheses[2] != 90 {
				t.Errorf("%s, round %d: the idle hypothesis is at %v", empty, round, s.Hypotheses[2:])
			}
		}
	}
}

func TestRoundWithoutReleasesChangesNothing(t *testing.T) {
	g := newGroup(t, config.Default("synthetic", "ifca", "paper"))
	s := twoHypotheses()
	g.Aggregate(s, Releases{Declined: 7})
	if !slices.Equal(s.Hypotheses, twoHypotheses().Hypotheses) || s.Round != 1 || s.Idle[0] != 0 {
		t.Errorf("%+v", s)
	}
}

// TestDivergenceIsAFixedReleaseAndNamed: training that leaves the finite numbers ends
// in the chosen hypothesis with the noise that was paid for; the participant is told,
// and a simulation stops.
func TestDivergenceIsAFixedReleaseAndNamed(t *testing.T) {
	for _, c := range []struct{ kind, mode, noise string }{
		{"ifca", "paper", "simulated"}, {"group-private", "paper", "simulated"}, {"group-private", "sound", "simulated"},
		{"group-private", "paper", NoiseSeeded}, {"group-private", "sound", NoiseSeeded},
	} {
		run := config.Default("synthetic", c.kind, c.mode)
		run.Algorithm.Local.Step = 1e308
		run.Algorithm.Local.Epochs = 10
		run.Privacy.Noise = c.noise
		if c.mode == "sound" {
			run.Privacy.Radius = 1e-6
		}
		g := newGroup(t, run)
		b, err := g.Broadcast(twoHypotheses())
		if err != nil {
			t.Fatal(err)
		}
		p := &Participant{ID: 4, Data: &data.Synthetic(run.Data, 1).Train[0], Purse: &purseStub{}}
		out := make([]float64, 2)
		released, err := g.Respond(new(Worker), b, p, out)
		if !released || err != nil || len(p.Purse.(*purseStub).asked) != 1 {
			t.Errorf("%+v: released %v, %v", c, released, err)
		}
		if p.Mishap == nil || !strings.Contains(p.Mishap.Error(), "client 4") || !strings.Contains(p.Mishap.Error(), "algorithm.local.step") {
			t.Errorf("%+v: the participant is told %v", c, p.Mishap)
		}
		near := math.Inf(1)
		for j := range 2 {
			near = min(near, math.Hypot(out[0]-b.Hypotheses[2*j], out[1]-b.Hypotheses[2*j+1]))
		}
		if !(near < 1e-3) || near == 0 && c.kind == "group-private" {
			t.Errorf("%+v: %v lies %v from the nearest hypothesis", c, out, near)
		}
		if released, err := RespondOpenly(g, new(Worker), b, p, out); released || err == nil {
			t.Errorf("%+v: a simulation goes on: %v, %v", c, released, err)
		}
	}
}

// TestPaperModeNeverFailsOnAnUpdatesLength: noise is as wide as the update is long, and
// a length beyond exact integers is cut to a public one.
func TestPaperModeNeverFailsOnAnUpdatesLength(t *testing.T) {
	for _, n := range []int{2, 40, 1_200_000} {
		run := config.Default("synthetic", "group-private", "paper")
		run.Privacy.Noise = NoiseSeeded
		g, err := NewGroup(run, model.Linear{Features: n})
		if err != nil {
			t.Fatal(err)
		}
		for _, length := range []float64{0, 1e-300, 1e-9, 1, 1e12, 1e150, 1e307} {
			delta := make([]float64, n)
			delta[0] = length
			w, p := &Worker{delta: delta}, new(Participant)
			base, out := make([]float64, n), make([]float64, n)
			if err := g.boundLayers(w, Broadcast{}, p); err != nil {
				t.Fatalf("%d values of length %v: %v", n, length, err)
			}
			if err := g.release(w, Broadcast{}, p, out, base); err != nil {
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
		g := newGroup(t, run)
		p := Participant{Data: &data.Synthetic(run.Data, 1).Train[0]}
		s := twoHypotheses()
		s.Hypotheses[0] += 1e-13 // below the lattice
		out, ok := respond(t, g, s, &p)
		l, err := g.lattice(&g.layers[0], run.Privacy.Radius)
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
		again, _ := respond(t, g, s, &p)
		if slices.Equal(again, out) {
			t.Errorf("%s: the same noise twice", mode)
		}
	}
}

func TestCheck(t *testing.T) {
	for path, change := range map[string]func(*config.Run){
		"algorithm.clients_per_round":       func(r *config.Run) { r.Algorithm.ClientsPerRound = 101 },
		"algorithm.stop.validation_clients": func(r *config.Run) { r.Algorithm.Stop.ValidationClients = 101 },
		"algorithm.hypotheses":              func(r *config.Run) { r.Algorithm.Kind = "fedavg" },
		"privacy.noise_multiplier":          func(r *config.Run) { r.Privacy.NoiseMultiplier = 1 },
		"privacy.radius": func(r *config.Run) {
			r.Algorithm.Kind, r.Algorithm.Mode, r.Privacy.NoiseMultiplier = "group-private", "sound", 1
		},
		"privacy.radius_decay": func(r *config.Run) {
			r.Algorithm.Kind, r.Algorithm.Mode, r.Privacy.NoiseMultiplier = "group-private", "sound", 1
			r.Privacy.Radius, r.Privacy.RadiusDecay = 1, 0.1
		},
	} {
		run := config.Default("synthetic", "ifca", "paper")
		change(&run)
		if faults := Check(run); len(faults) != 1 || faults[0].Path != path {
			t.Errorf("%s: %v", path, faults)
		}
	}
}

func TestAffordable(t *testing.T) {
	run := config.Default("synthetic", "group-private", "paper")
	ceiling := 0.3
	run.Privacy.Ceiling = &ceiling
	if err := Affordable(run, 2); !errors.Is(err, ErrRefused) {
		t.Errorf("a ceiling below one release: %v", err)
	}
	run.Privacy.NoiseMultiplier = 0
	if err := Affordable(run, 2); !errors.Is(err, ErrRefused) {
		t.Errorf("a ceiling without noise: %v", err)
	}
	ceiling, run.Privacy.NoiseMultiplier = 0.4, 5
	if err := Affordable(run, 2); err != nil {
		t.Errorf("a ceiling of one release: %v", err)
	}
}

func TestStatementsSayWhatTheyAre(t *testing.T) {
	paper := stateTerms(config.Default("synthetic", "group-private", "paper"))
	sound := stateTerms(config.Default("synthetic", "group-private", "sound"))
	none := stateTerms(config.Default("synthetic", "ifca", "paper"))
	mentions := func(s event.Statement, word string) bool {
		return slices.ContainsFunc(s.NotCovered, func(line string) bool { return strings.Contains(line, word) })
	}
	if paper.Claim != event.ClaimHeuristic || paper.Radius != nil || !mentions(paper, "validation clients") || !mentions(paper, "group membership") {
		t.Errorf("paper mode: %+v", paper)
	}
	if sound.Claim != event.ClaimMetric || *sound.Radius != 0.3 || mentions(sound, "validation clients") || !mentions(sound, "group membership") {
		t.Errorf("sound mode: %+v", sound)
	}
	if none.Claim != event.ClaimNone || none.Trust != event.TrustNobody {
		t.Errorf("no noise: %+v", none)
	}
	run := config.Default("synthetic", "group-private", "sound")
	run.Algorithm.Stop.Return = "best"
	if !mentions(stateTerms(run), "validation clients") {
		t.Error("best-so-far in sound mode is not labelled")
	}
	parts := []Participant{{}, {}}
	parts[1].Account.Add(event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 0.3})
	p := StatePrivacy(config.Default("synthetic", "group-private", "sound"), parts, 2, 0, 0)
	if p.MaxEpsilon != 0.4 || p.MedianEpsilon != 0.2 || *p.EpsilonAnyUpdate != 0.8 || p.EpsilonPerRelease != 0.4 {
		t.Errorf("%+v", p)
	}
}
