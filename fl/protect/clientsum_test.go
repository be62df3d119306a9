package protect

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
	"github.com/coterie-fl/coterie/internal/rng"
)

// server is the server's half of client-level privacy, for so many participants.
type server struct {
	t *testing.T
	a *fl.Algorithm
	m *client
}

const serverRounds = 400

func newServer(t *testing.T, participants int, set func(p *config.Run)) server {
	t.Helper()
	run := fltest.ClientRun()
	run.Algorithm.Mode, run.Algorithm.Rounds = "sound", serverRounds
	run.Privacy.UpdateClip = 0.5
	set(&run)
	var c config.Checker
	checkClient(&c, run, fl.Outline{Sends: 1})
	if faults := c.Faults(); faults != nil {
		t.Fatal(faults)
	}
	a := fltest.New(t, run, participants)
	return server{t, a, a.Protection().(*client)}
}

// round makes one round in place and returns how far the model moved.
func (s server) round(st *fl.State, updates ...[]float64) []float64 {
	s.t.Helper()
	r := fl.Releases{Declined: s.m.Participants - len(updates)}
	for i, u := range updates {
		r.Clients, r.Vectors = append(r.Clients, i), append(r.Vectors, u...)
	}
	before := slices.Clone(st.Hypotheses)
	if out := s.a.Aggregate(st, r); out.Err != nil {
		s.t.Fatal(out.Err)
	}
	moved := slices.Clone(st.Hypotheses)
	for i := range moved {
		moved[i] -= before[i]
	}
	return moved
}

// nasty are updates that a participant might send.
func nasty(n int, axis []float64) [][]float64 {
	family := rng.NewFamily(5, "updates")
	list := [][]float64{make([]float64, n), slices.Repeat([]float64{math.NaN()}, n), slices.Repeat([]float64{1e300}, n)}
	for i := range 60 {
		s := family.Stream(0, i)
		v, size := make([]float64, n), math.Exp(6*s.Float64()-4)
		for j := range v {
			v[j] = size * (s.Normal() + 2*float64(i%5-2)*axis[j])
		}
		list = append(list, v)
	}
	for _, f := range []float64{1, -1, 100, -100, 1e-200} {
		v := slices.Clone(axis)
		for j := range v {
			v[j] *= f
		}
		list = append(list, v)
	}
	return list
}

// TestWhatOneParticipantMoves: another update in a participant's place moves the mean by
// at most twice what the noise goes by, and one that is left out by no more than that
// under add-remove; and noise goes by no more than that. The noise of both neighbours is
// the same here, so that their difference is the sums'. The variance of 2,000 values leaves
// 1 ± 4.9*sqrt(2/2000) about once in a million.
func TestWhatOneParticipantMoves(t *testing.T) {
	const clip, degree = 0.5, math.Pi / 180
	for name, c := range map[string]struct {
		set   func(p *config.Privacy)
		bound float64 // half of what one update in another's place moves; 0: the clip
		wider float64 // noise on updates, by what is charged
	}{
		"ball":             {set: func(*config.Privacy) {}},
		"recentred":        {set: func(p *config.Privacy) { p.Recentre = "last" }},
		"recentred mean":   {set: func(p *config.Privacy) { p.Recentre = "mean" }},
		"narrow sector":    {func(p *config.Privacy) { p.Sector = config.Sector{Lower: 0.5, Angle: 20} }, clip * math.Sqrt(1.25-math.Cos(40*degree)) / 2, 0},
		"sector":           {func(p *config.Privacy) { p.Sector = config.Sector{Angle: 40, Axis: "mean"} }, clip * math.Sin(40*degree), 0},
		"any direction":    {set: func(p *config.Privacy) { p.Sector = config.Sector{Lower: 0.9, Angle: 180} }},
		"counted clip":     {func(p *config.Privacy) { p.Clipping = config.Clipping{Rule: "quantile", GradientNoise: 1.5} }, 0, 1.5},
		"clip that decays": {set: func(p *config.Privacy) { p.Clipping.Decay = 0.5 }},
	} {
		for _, noise := range []string{"simulated", fl.NoiseSeeded} {
			t.Run(name+" "+noise, func(t *testing.T) {
				const k = 6
				s := newServer(t, k, func(run *config.Run) {
					run.Privacy.Relation, run.Privacy.Noise = "replace-one", noise
					c.set(&run.Privacy)
				})
				start := s.a.Start()
				axis := s.round(start, nasty(s.m.n, make([]float64, s.m.n))[5]) // released: the sector's axis
				updates, kept := nasty(s.m.n, axis), s.m.memory(start)
				bound := cmp.Or(c.bound, kept.clip())
				others := [][]float64{updates[3], updates[9], updates[12]}
				ask := func(own ...[]float64) []float64 {
					return s.round(start.Clone(), append(slices.Clone(others), own...)...)
				}
				absent := ask()
				var furthest, leaving float64
				for i, u := range updates {
					one := ask(u)
					leaving = max(leaving, distance(one, absent)*k)
					for _, v := range updates[:i] {
						furthest = max(furthest, distance(one, ask(v))*k)
					}
				}
				if most := 2 * bound * (1 + 1e-4); furthest > most || furthest < 0.6*most {
					t.Errorf("one participant in another's place moves the sum by %v, the noise allows for %v", furthest, most)
				}
				if most := bound * (1 + 1e-4); leaving > most && s.m.privacy.Sector.Angle == 0 || leaving > 2*most {
					t.Errorf("one participant more moves the sum by %v, the noise allows for %v", leaving, most)
				}
				measured := s.deviation(start, others) * k / (s.m.noise * cmp.Or(c.wider, 1) * bound)
				if wide := 4.9 * math.Sqrt(2.0/2000); math.Abs(measured*measured-1) > wide {
					t.Errorf("the noise is %v of what it should be", measured)
				}
			})
		}
	}
}

// deviation is that of the mean's noise, over the rounds that may still come.
func (s server) deviation(start *fl.State, updates [][]float64) float64 {
	var all [][]float64
	mean := make([]float64, s.m.n)
	for t := range serverRounds {
		st := start.Clone()
		st.Round = t
		all = append(all, s.round(st, updates...))
		for i, v := range all[t] {
			mean[i] += v / serverRounds
		}
	}
	var squares float64
	for _, v := range all {
		squares += distance(v, mean) * distance(v, mean)
	}
	return math.Sqrt(squares / float64((serverRounds-1)*s.m.n))
}

func distance(a, b []float64) float64 {
	var sum float64
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(sum)
}

// TestServerMomentum: the common model goes on by a share of its last step.
func TestServerMomentum(t *testing.T) {
	s := newServer(t, 2, func(run *config.Run) {
		run.Privacy.Epsilon, run.Privacy.NoiseMultiplier = 0, 1e-9
		run.Algorithm.ServerMomentum = 0.5
	})
	st, u := s.a.Start(), make([]float64, s.m.n)
	for _, want := range []float64{0.1, 0.15, 0.175} {
		u[0] = 0.1
		if got := s.round(st, u, u)[0]; math.Abs(got-want) > 1e-6 {
			t.Errorf("moved by %v, not %v", got, want)
		}
	}
}

// TestRecentredUpdatesComeThrough: what lies around the last mean is not clipped, however
// far it is from 0.
func TestRecentredUpdatesComeThrough(t *testing.T) {
	s := newServer(t, 2, func(run *config.Run) {
		run.Privacy.Epsilon, run.Privacy.NoiseMultiplier, run.Privacy.Recentre = 0, 1e-9, "last"
	})
	st, u := s.a.Start(), make([]float64, s.m.n)
	for _, want := range []float64{0.5, 1, 1.2, 1.2} { // by at most the clip, 0.5, a round
		u[0] = 1.2
		if got := s.round(st, slices.Clone(u), slices.Clone(u))[0]; math.Abs(got-want) > 1e-6 {
			t.Errorf("moved by %v, not %v", got, want)
		}
	}
	if reach := s.m.reach(); reach < 1.2 {
		t.Errorf("participants shorten updates to %v before the server sees them", reach)
	}
}

// TestRunningMeansAreMeans: the centre is the mean of all means so far, or the last.
func TestRunningMeansAreMeans(t *testing.T) {
	for recentre, want := range map[string]float64{"last": 0.4, "mean": 0.25} {
		s := newServer(t, 2, func(run *config.Run) {
			run.Privacy.Epsilon, run.Privacy.NoiseMultiplier, run.Privacy.Recentre = 0, 1e-9, recentre
		})
		st, u := s.a.Start(), make([]float64, s.m.n)
		for _, size := range []float64{0.1, 0.2, 0.3, 0.4} {
			u[0] = size
			s.round(st, slices.Clone(u), slices.Clone(u))
		}
		if kept := s.m.memory(st); math.Abs(kept.centre[0]-want) > 1e-6 {
			t.Errorf("%s of 0.1 to 0.4 is %v, not %v", recentre, kept.centre[0], want)
		}
	}
}
