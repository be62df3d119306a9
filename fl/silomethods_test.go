package fl

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/rng"
)

// TestRelationsAgreeWithTheirDefinition: S = (W W')^(1/2)/trace, computed from either
// side, against a plain computation of all of it.
func TestRelationsAgreeWithTheirDefinition(t *testing.T) {
	run := siloRun("mocha")
	for _, silos := range []int{3, 12} { // fewer and more than parameters
		m := newTestSilo(t, run, silos).method.(*mocha)
		f := rng.NewFamily(3, "models")
		w := make([]float64, silos*m.n)
		for i := range w {
			w[i] = f.Stream(0, i).Normal()
		}
		related, diagonal := make([]float64, silos*m.n), make([]float64, silos)
		m.relate(related, diagonal, w)

		models := mat.NewDense(silos, m.n, slices.Clone(w))
		var gram mat.Dense
		gram.Mul(models, models.T())
		sym := mat.NewSymDense(silos, nil)
		for i := range silos {
			for j := i; j < silos; j++ {
				sym.SetSym(i, j, gram.At(i, j))
			}
		}
		var eigen mat.EigenSym
		if !eigen.Factorize(sym, true) {
			t.Fatal("no eigenvalues")
		}
		values := eigen.Values(nil)
		trace := 0.0
		for i, v := range values {
			values[i] = math.Sqrt(max(v, leastRelation))
			trace += values[i]
		}
		var vectors, s, want mat.Dense
		eigen.VectorsTo(&vectors)
		s.Mul(&vectors, mat.NewDiagDense(silos, values))
		s.Mul(&s, vectors.T())
		s.Scale(1/trace, &s)
		want.Mul(&s, models)
		for i := range silos {
			if math.Abs(diagonal[i]-s.At(i, i)) > 1e-9 {
				t.Errorf("%d silos: diagonal %d is %v, want %v", silos, i, diagonal[i], s.At(i, i))
			}
			for j := range m.n {
				if math.Abs(related[i*m.n+j]-want.At(i, j)) > 1e-9 {
					t.Errorf("%d silos: (S W)[%d][%d] is %v, want %v", silos, i, j, related[i*m.n+j], want.At(i, j))
				}
			}
		}
	}
}

// TestServerNoiseOfClientLevel: the noise on a round's mean is that of the plan. The
// sum of n squared standard normals leaves n ± 4.9*sqrt(2n) about once in a million.
func TestServerNoiseOfClientLevel(t *testing.T) {
	for _, noise := range []string{"simulated", NoiseSeeded} {
		run := siloRun("dp-fedavg")
		run.Privacy.Noise = noise
		s := newTestSilo(t, run, 10)
		m := s.method.(*clientLevel)
		measure := func(scale float64) float64 {
			st := s.Start()
			var squares float64
			n := 0
			r := Releases{Clients: []int{0}, Vectors: make([]float64, s.ReleaseLength())}
			for range 400 {
				before := slices.Clone(st.Hypotheses)
				if out := s.Aggregate(st, r); out.Err != nil {
					t.Fatal(out.Err)
				}
				for i, v := range st.Hypotheses {
					z := (v - before[i]) / (scale * m.noise * run.Privacy.UpdateClip / 10)
					squares += z * z
					n++
				}
			}
			return (squares - float64(n)) / math.Sqrt(2*float64(n))
		}
		if z := measure(1); math.Abs(z) > 4.9 {
			t.Errorf("%s: the noise is off by %.1f standard errors", noise, z)
		}
		if z := measure(1.15); math.Abs(z) < 4.9 { // planted: noise that is 15 % too small
			t.Errorf("%s: the test does not see a wrong scale (%.1f)", noise, z)
		}
	}
}

// TestForgedDeclarations: a release comes from outside and must not harm the others.
func TestForgedDeclarations(t *testing.T) {
	for name, run := range siloVariants() {
		s := newTestSilo(t, run, 2)
		length := s.ReleaseLength()
		if length == 0 {
			continue
		}
		for _, tail := range [][tailLength]float64{
			{math.NaN(), 0, 0, 1}, {math.Inf(1), 0, 0, 1}, {-1, 0, 0, 1}, {1, -1, 0, 1}, {1, 1e18, 0, 1}, {1, math.NaN(), 0, 1},
			{1, 0.5, 0, 1}, {1, 0, -1, 1}, {1, 0, math.NaN(), 1}, {1, 0, 0, 0}, {1, 0, 0, math.NaN()},
		} {
			st := s.Start()
			before := slices.Clone(st.Hypotheses)
			r := Releases{Clients: []int{0, 7}, Vectors: make([]float64, 2*length)} // and a silo that is not there
			for i := range r.Clients {
				r.Vectors[i*length] = 0.001
				copy(r.Vectors[i*length+s.n:], tail[:])
			}
			s.Aggregate(st, r)
			if run.Algorithm.Kind != "dp-fedavg" && !slices.Equal(st.Hypotheses, before) {
				t.Errorf("%s: a release that declares %v moved the model", name, tail)
			}
		}
	}
}

// TestForgedBroadcasts: a server that sends something else than models gets an error,
// and a silo keeps what it has.
func TestForgedBroadcasts(t *testing.T) {
	train, _ := testSilos(2, 30, testFeatures, 0.2)
	for name, run := range siloVariants() {
		s := newTestSilo(t, run, 2)
		for _, length := range []int{0, 1, s.n - 1, s.n + 1, 7 * s.n} {
			for _, round := range []int{0, 5, run.Algorithm.Rounds} {
				p := Participant{ID: 1, Data: &train[1]}
				if err := s.Prepare(&p); err != nil {
					t.Fatal(err)
				}
				b := Broadcast{Round: round, Hypotheses: make([]float64, length), Memory: make([]float64, length)}
				out, dst := make([]float64, s.ReleaseLength()), make([]float64, s.n)
				_, err := s.Respond(new(Worker), b, &p, out)
				alone := run.Algorithm.Kind == "local" || run.Algorithm.Kind == "finetune" && round > 0
				if err == nil && !alone && run.Algorithm.Kind != "mocha" {
					t.Errorf("%s, round %d: %d values pass for models", name, round, length)
				}
				s.Adopt(dst, b, &p)
			}
		}
	}
}

// TestPrivateChoiceIsPaidFor: what a choosing round pays for names it.
func TestPrivateChoiceIsPaidFor(t *testing.T) {
	train, _ := testSilos(2, 40, testFeatures, 0.2)
	run := siloRun("ifca")
	_, ps, _ := federate(t, run, train)
	if want := 1; ps[0].Paid.Choices != want || ps[0].Paid.Rounds != run.Algorithm.Rounds {
		t.Errorf("paid for %+v, want %d choice in %d rounds", ps[0].Paid, want, run.Algorithm.Rounds)
	}
	r, err := ps[0].Plan.release(true, false)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, part := range r.What.(event.Composed).Parts {
		if again, ok := part.(event.Repeated); ok {
			if s, ok := again.Of.(event.Selection); ok {
				found = s.Mechanism == event.Exponential && s.Epsilon == 0.03*6
			}
		}
	}
	if !found {
		t.Errorf("a choosing round pays for %+v", r.What)
	}
}

// TestSiloFaults: what does not go together is named, all at once.
func TestSiloFaults(t *testing.T) {
	for path, change := range map[string]func(*config.Run){
		"algorithm.kind":              func(r *config.Run) { r.Algorithm.Kind = "group-private" },
		"algorithm.lambda":            func(r *config.Run) { r.Algorithm.Lambda = "300" },
		"algorithm.hypotheses":        func(r *config.Run) { r.Algorithm.WarmStart = 0.1 },
		"algorithm.warm_start":        func(r *config.Run) { r.Algorithm.Kind, r.Algorithm.WarmStart, r.Algorithm.Hypotheses = "ditto", 0.1, 2 },
		"privacy.public_size":         func(r *config.Run) { sound(r); r.Privacy.Relation, r.Algorithm.Weights = "add-remove", "equal" },
		"algorithm.weights":           func(r *config.Run) { sound(r); r.Privacy.Relation, r.Privacy.PublicSize = "add-remove", 50 },
		"data.standardise":            func(r *config.Run) { sound(r); r.Data.Standardise = "silo" },
		"privacy.relation":            func(r *config.Run) { r.Privacy.Relation = "replace-one" },
		"privacy.noise_multiplier":    func(r *config.Run) { r.Privacy.NoiseMultiplier = 1 },
		"algorithm.clients_per_round": func(r *config.Run) { r.Algorithm.ClientsPerRound = 5 },
		"algorithm.empty":             func(r *config.Run) { r.Algorithm.Empty = "relocate" },
		"algorithm.stop":              func(r *config.Run) { r.Algorithm.Stop.Patience = 6 },
		"algorithm.selection.score":   func(r *config.Run) { r.Algorithm.Selection.Score = "error" },
		"algorithm.prox":              func(r *config.Run) { r.Algorithm.Kind, r.Algorithm.Prox = "ditto", "server" },
		"privacy.silos.1.name": func(r *config.Run) {
			r.Privacy.Silos = []config.SiloTarget{{Name: "a", Epsilon: 1}, {Name: "a", Epsilon: 2}}
		},
	} {
		run := config.Default("school", "mr-mtl", "paper")
		if faults := Check(run); len(faults) > 0 {
			t.Fatal(faults)
		}
		change(&run)
		faults := Check(run)
		if len(faults) != 1 || faults[0].Path != path {
			t.Errorf("%s: faults %v", path, faults)
		}
	}
	group := config.Default("synthetic", "fedavg", "paper")
	group.Algorithm.Kind = "mr-mtl"
	if faults := Check(group); len(faults) != 1 || faults[0].Path != "algorithm.kind" {
		t.Errorf("mr-mtl on synthetic clients: %v", faults)
	}
	group = config.Default("synthetic", "fedavg", "paper")
	group.Algorithm.Empty = "split"
	if faults := Check(group); len(faults) != 1 || faults[0].Path != "algorithm.empty" {
		t.Errorf("split without clusters that are named: %v", faults)
	}
}

func sound(r *config.Run) {
	*r = config.Default("school", "mr-mtl", "sound")
}
