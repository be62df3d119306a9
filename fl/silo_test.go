package fl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// testSilos draws silos of rows whose intercepts differ by tau and whose slopes are
// the same.
func testSilos(silos, rows, features int, tau float64) (train, test []data.Client) {
	family := rng.NewFamily(9, "test silos")
	for k := range silos {
		s := family.Stream(0, k)
		shift := tau * s.Normal()
		for _, part := range []*[]data.Client{&train, &test} {
			r := data.Rows{Features: features}
			for range rows {
				y := shift + 0.1*s.Normal()
				for j := range features {
					x := s.Normal()
					r.X = append(r.X, x)
					y += 0.2 * x / float64(j+1)
				}
				r.Y = append(r.Y, y)
			}
			*part = append(*part, data.Client{Rows: r})
		}
	}
	return train, test
}

func siloRun(kind string) config.Run {
	run := config.Default("school", kind, "paper")
	run.Algorithm.Rounds = 12
	run.Algorithm.Local = config.Local{Epochs: 1, Step: 0.05, Batch: 10, Loss: "squared-error"}
	return run
}

const testFeatures = 4

func newTestSilo(t testing.TB, run config.Run, silos int) *Silo {
	t.Helper()
	m := model.Linear{Features: testFeatures, Intercept: true, Loss: model.HalfSquaredError}
	s, err := NewSilo(run, m, silos)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// federate makes a whole run and returns every silo's model, the participants and
// the server's state.
func federate(t testing.TB, run config.Run, clients []data.Client) ([][]float64, []Participant, *State) {
	t.Helper()
	s := newTestSilo(t, run, len(clients))
	ps := make([]Participant, len(clients))
	ids := make([]int, len(clients))
	for i := range ps {
		ps[i], ids[i] = Participant{ID: i, Name: fmt.Sprint("silo ", i), Data: &clients[i]}, i
		if err := s.Prepare(&ps[i]); err != nil {
			t.Fatal(err)
		}
	}
	st, w := s.Start(), new(Worker)
	var r Round
	for range run.Algorithm.Rounds {
		b, err := s.Broadcast(st)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Open(st.Round, ids, s.ReleaseLength()); err != nil {
			t.Fatal(err)
		}
		for i := range ps {
			released, err := s.Respond(w, b, &ps[i], r.Slot(i))
			if err != nil || !released {
				t.Fatalf("%s: released %v, %v", run.Algorithm.Kind, released, err)
			}
			if err := r.Released(i); err != nil {
				t.Fatal(err)
			}
		}
		releases, err := r.Close()
		if err != nil {
			t.Fatal(err)
		}
		if out := s.Aggregate(st, releases); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	b, err := s.Broadcast(st)
	if err != nil {
		t.Fatal(err)
	}
	models := make([][]float64, len(ps))
	for i := range ps {
		before := slices.Clone(ps[i].Personal)
		models[i] = make([]float64, s.n)
		s.Adopt(models[i], b, &ps[i])
		if !slices.Equal(before, ps[i].Personal) {
			t.Errorf("%s: Adopt changed what silo %d keeps", run.Algorithm.Kind, i)
		}
	}
	return models, ps, st
}

// testError is the mean squared error of every silo's model on its held-out rows.
func testError(models [][]float64, test []data.Client) float64 {
	l, err := model.Linear{Features: testFeatures, Intercept: true, Loss: model.HalfSquaredError}.Learner()
	if err != nil {
		panic(err)
	}
	sum := 0.0
	for i := range test {
		loss, _, err := l.Judge(models[i], &test[i])
		if err != nil {
			panic(err)
		}
		sum += loss
	}
	return sum / float64(len(test))
}

// siloVariants are all methods, with what they need.
func siloVariants() map[string]config.Run {
	out := map[string]config.Run{}
	for _, kind := range config.SiloMethods {
		run := siloRun(kind)
		if kind == "mocha" {
			run.Algorithm.Lambda = "0.01"
		}
		out[kind] = run
	}
	for _, kind := range []string{"mr-mtl", "local", "fedavg", "finetune"} {
		run := siloRun(kind)
		run.Algorithm.WarmStart, run.Algorithm.Hypotheses = 0.3, 2
		out["warm "+kind] = run
	}
	split := siloRun("ifca")
	split.Algorithm.Hypotheses, split.Algorithm.Empty, split.Algorithm.Selection.Share = 3, "split", 0.5
	out["ifca split"] = split
	for _, prox := range []string{"inside", "server"} {
		run := siloRun("mr-mtl")
		run.Algorithm.Prox = prox
		out["mr-mtl "+prox] = run
	}
	auto := siloRun("mr-mtl")
	auto.Algorithm.Lambda = config.LambdaAuto
	out["mr-mtl auto"] = auto
	return out
}

// TestSiloMethodsLearn: without privacy every method fits; with little privacy cost
// it still does, from the seed and on the lattice alike, and repeats.
func TestSiloMethodsLearn(t *testing.T) {
	train, test := testSilos(4, 60, testFeatures, 0.2)
	zero := make([][]float64, len(test))
	for i := range zero {
		zero[i] = make([]float64, testFeatures+1)
	}
	untrained := testError(zero, test)
	for name, run := range siloVariants() {
		run.Algorithm.Rounds = 30
		run.Privacy.Epsilon = 0
		if run.Algorithm.Kind == "dp-fedavg" {
			run.Privacy.UpdateClip = 1
		}
		plain, _, _ := federate(t, run, train)
		if e := testError(plain, test); !(e < 0.7*untrained) {
			t.Errorf("%s without privacy: error %.4f, untrained %.4f", name, e, untrained)
		}
		run.Privacy.NoiseMultiplier, run.Algorithm.Rounds = 1, 4
		if run.Algorithm.Hypotheses > 1 { // a private choice takes a share of a target
			run.Privacy.NoiseMultiplier, run.Privacy.Epsilon = 0, 50
		}
		first, _, _ := federate(t, run, train)
		again, _, _ := federate(t, run, train)
		run.Privacy.Noise = NoiseSeeded
		exact, _, _ := federate(t, run, train)
		exactAgain, _, _ := federate(t, run, train)
		for i := range first {
			if !slices.Equal(first[i], again[i]) || !slices.Equal(exact[i], exactAgain[i]) {
				t.Fatalf("%s: silo %d has another model the second time", name, i)
			}
			if slices.Equal(first[i], exact[i]) {
				t.Fatalf("%s: exact noise changed nothing", name)
			}
		}
	}
}

func TestSilosPayBeforeTheyTrain(t *testing.T) {
	train, _ := testSilos(3, 40, testFeatures, 0.2)
	for name, run := range siloVariants() {
		for _, refusal := range []error{fmt.Errorf("too much: %w", ErrRefused), errors.New("disk is full")} {
			run.Privacy.Noise = "exact"
			s := newTestSilo(t, run, 3)
			purse := &purseStub{err: refusal}
			p := Participant{Data: &train[0], Purse: purse}
			if err := s.Prepare(&p); err != nil {
				t.Fatal(err)
			}
			own := slices.Clone(p.Personal)
			b, err := s.Broadcast(s.Start())
			if err != nil {
				t.Fatal(err)
			}
			out := make([]float64, s.ReleaseLength())
			released, err := s.Respond(new(Worker), b, &p, out)
			if released || (err != nil) == errors.Is(refusal, ErrRefused) {
				t.Errorf("%s: released %v, error %v", name, released, err)
			}
			if len(purse.asked) != 1 || purse.asked[0].Validate() != nil {
				t.Errorf("%s: the purse was asked for %+v", name, purse.asked)
			}
			if !slices.Equal(out, make([]float64, len(out))) || !slices.Equal(own, p.Personal) || p.Paid != (SiloPaid{}) {
				t.Errorf("%s: something happened that was not paid for", name)
			}
		}
	}
}

// TestSiloTargetsAreKept: after all rounds a silo has spent its target, and no more;
// extra passes and choices are part of it.
func TestSiloTargetsAreKept(t *testing.T) {
	train, _ := testSilos(3, 45, testFeatures, 0.2)
	noise := map[string]float64{}
	for name, run := range siloVariants() {
		for _, mode := range []string{"paper", "sound"} {
			if mode == "sound" {
				run.Algorithm.Mode, run.Privacy.Relation = "sound", "replace-one"
				if run.Algorithm.Kind == "dp-fedavg" {
					run.Privacy.Relation = "add-remove"
				}
			}
			_, ps, _ := federate(t, run, train)
			g, proved, err := ps[0].Plan.Spend(ps[0].Paid)
			if err != nil {
				t.Fatal(err)
			}
			if g.Epsilon > run.Privacy.Epsilon || g.Epsilon < 0.999*run.Privacy.Epsilon {
				t.Errorf("%s, %s: spent %v of %v", name, mode, g.Epsilon, run.Privacy.Epsilon)
			}
			heuristic := mode == "paper" && run.Algorithm.Kind != "dp-fedavg"
			if (g.Claim == event.ClaimHeuristic) != heuristic || (proved != nil) != heuristic {
				t.Errorf("%s, %s: claim %s, proved %v", name, mode, g.Claim, proved)
			}
			if proved != nil && !(proved.Epsilon > g.Epsilon) {
				t.Errorf("%s: proved epsilon %v, by the papers' formula %v", name, proved.Epsilon, g.Epsilon)
			}
			if mode == "paper" {
				noise[name] = ps[0].Plan.Noise
			}
		}
	}
	// A regulariser costs nothing; Ditto's second pass and choices of clusters do.
	if noise["mr-mtl"] != noise["local"] || noise["mr-mtl auto"] != noise["local"] {
		t.Errorf("noise of local %v, mr-mtl %v, auto %v", noise["local"], noise["mr-mtl"], noise["mr-mtl auto"])
	}
	if !(noise["ditto"] > 1.2*noise["local"]) || !(noise["ifca"] > noise["fedavg"]) || !(noise["warm mr-mtl"] > noise["mr-mtl"]) {
		t.Errorf("overheads are not charged: %v", noise)
	}
}

// TestNothingPublicTellsTheSize is DESIGN's erratum 14: under add-remove two silos
// of different size plan and declare the same. In paper mode they do not.
func TestNothingPublicTellsTheSize(t *testing.T) {
	small, _ := testSilos(1, 21, testFeatures, 0.2)
	large, _ := testSilos(1, 90, testFeatures, 0.2)
	declares := func(run config.Run, c *data.Client) string {
		s := newTestSilo(t, run, 2)
		p := Participant{Data: c}
		if err := s.Prepare(&p); err != nil {
			t.Fatal(err)
		}
		r, err := p.Plan.release(s.method.choosing(0), s.owesMoments(0, &p))
		if err != nil {
			t.Fatal(err)
		}
		out := make([]float64, s.n+tailLength)
		s.declare(out, make([]float64, s.n), &p, 0)
		return fmt.Sprint(p.Plan.Batch, p.Plan.Steps, p.Plan.Noise, p.Plan.Rate, r, out)
	}
	for _, kind := range []string{"mr-mtl", "fedavg", "ditto", "ifca"} {
		run := siloRun(kind)
		if declares(run, &small[0]) == declares(run, &large[0]) {
			t.Errorf("%s, paper mode: the test cannot see a size", kind)
		}
		run.Algorithm.Mode, run.Privacy.Relation = "sound", "add-remove"
		run.Privacy.PublicSize, run.Algorithm.Weights = 40, "equal"
		if a, b := declares(run, &small[0]), declares(run, &large[0]); a != b {
			t.Errorf("%s: 21 rows give %s, 90 rows %s", kind, a, b)
		}
	}
}

// TestEndsOfTheSpectrum: drawn with lambda 0 MR-MTL is local training, at infinity
// FedAvg, to the last bit.
func TestEndsOfTheSpectrum(t *testing.T) {
	train, _ := testSilos(5, 30, testFeatures, 0.2)
	run := siloRun("mr-mtl")
	run.Algorithm.Prox = "server"
	for lambda, kind := range map[config.Lambda]string{"0": "local", "inf": "fedavg"} {
		run.Algorithm.Lambda = lambda
		got, _, _ := federate(t, run, train)
		want, _, _ := federate(t, siloRun(kind), train)
		for i := range got {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("lambda %s: silo %d has %v, with %s %v", lambda, i, got[i], kind, want[i])
			}
		}
	}
}

// TestOwnTargets: a silo that is named has its own target; several records of one
// person are converted by group privacy, and back.
func TestOwnTargets(t *testing.T) {
	train, _ := testSilos(3, 40, testFeatures, 0.2)
	run := siloRun("mr-mtl")
	run.Privacy.Silos = []config.SiloTarget{{Name: "silo 1", Epsilon: 1, Delta: 1e-5}, {Name: "silo 2", RecordsPerPerson: 3}}
	_, ps, _ := federate(t, run, train)
	if a, b := ps[0].Plan.Target, ps[1].Plan.Target; a != (Target{6, 1e-3, 1}) || b != (Target{1, 1e-5, 1}) {
		t.Errorf("targets %+v and %+v", a, b)
	}
	if !(ps[1].Plan.Noise > ps[0].Plan.Noise) || !(ps[2].Plan.Noise > ps[0].Plan.Noise) {
		t.Errorf("noise %v, %v, %v", ps[0].Plan.Noise, ps[1].Plan.Noise, ps[2].Plan.Noise)
	}
	e, d := ps[2].Plan.Target.perRecord()
	if math.Abs(3*e-6) > 1e-12 {
		t.Errorf("three records of epsilon %v are not 6", e)
	}
	if sum := d * (1 + math.Exp(e) + math.Exp(2*e)); math.Abs(sum-1e-3) > 1e-12 {
		t.Errorf("three records of delta %v add up to %v, want 0.001", d, sum)
	}
}

// TestGivenNoiseProtectsPersons: with a given noise a person's delta is the one that was
// stated, and the record's is found from it; no figure is missing, with no noise either.
func TestGivenNoiseProtectsPersons(t *testing.T) {
	train, _ := testSilos(2, 40, testFeatures, 0.2)
	for _, noise := range []float64{3, 1.5, 0.4, 0} {
		run := siloRun("mr-mtl")
		run.Privacy.Epsilon, run.Privacy.NoiseMultiplier, run.Privacy.Delta, run.Privacy.RecordsPerPerson = 0, noise, 1e-3, 4
		_, ps, _ := federate(t, run, train)
		plan := &ps[0].Plan
		g, _, err := plan.Spend(ps[0].Paid)
		if err != nil {
			t.Fatalf("noise %v: %v", noise, err)
		}
		epsilon, delta := plan.Target.Person(g.Epsilon, g.Delta)
		if noise < 1 { // it protects nobody with four records, which is told and is no fault
			if math.IsInf(epsilon, 1) != (noise == 0) || delta != 1 || g.Delta != 1e-3/4 {
				t.Errorf("noise %v: a record has (%v, %v), a person (%v, %v)", noise, g.Epsilon, g.Delta, epsilon, delta)
			}
			continue
		}
		if !(delta <= 1e-3) || !(delta > 0.999e-3) || math.Abs(epsilon/g.Epsilon-4) > 1e-12 {
			t.Errorf("noise %v: a record has (%v, %v), a person (%v, %v), want delta 0.001", noise, g.Epsilon, g.Delta, epsilon, delta)
		}
		// By hand: four steps of one record.
		sum := 0.0
		for j := range 4 {
			sum += g.Delta * math.Exp(float64(j)*g.Epsilon)
		}
		if math.Abs(sum/delta-1) > 1e-9 {
			t.Errorf("noise %v: four records of (%v, %v) have delta %v, told is %v", noise, g.Epsilon, g.Delta, sum, delta)
		}
		// And the record's epsilon is the accountant's at the record's delta.
		again, err := plan.training(ps[0].Paid.Rounds, 0, false).Guarantee(account.MethodRDP, g.Delta)
		if err != nil || again.Epsilon != g.Epsilon {
			t.Errorf("noise %v: the accountant says %v at %v, told is %v: %v", noise, again.Epsilon, g.Delta, g.Epsilon, err)
		}
	}
}

// TestExactNoiseIsCalibratedAtWholeOrders: a silo whose noise is exact adds as much as
// whole orders ask for, and states what they give; one with simulated noise is as it was.
func TestExactNoiseIsCalibratedAtWholeOrders(t *testing.T) {
	train, _ := testSilos(2, 40, testFeatures, 0.2)
	noise := map[string]float64{}
	for _, kind := range []string{"simulated", NoiseSeeded} {
		run := siloRun("mr-mtl")
		run.Algorithm.Mode, run.Privacy.Accounting, run.Privacy.PublicSize, run.Algorithm.Weights = "sound", "sound", 40, "equal"
		run.Data.Standardise, run.Privacy.Noise = "none", kind
		_, ps, _ := federate(t, run, train)
		plan := &ps[0].Plan
		if plan.drawn != event.Poisson {
			t.Fatalf("batches are drawn by %s", plan.drawn)
		}
		noise[kind] = plan.Noise
		g, _, err := plan.Spend(ps[0].Paid)
		if err != nil {
			t.Fatal(err)
		}
		r, err := plan.training(ps[0].Paid.Rounds, 0, false).Release()
		if err != nil {
			t.Fatal(err)
		}
		// Whole orders alone, by the accountant for continuous noise: they bound both.
		var orders []float64
		for a := 2.0; a < 200; a++ {
			orders = append(orders, a)
		}
		whole, err := account.Spend(r, account.MethodRDP, plan.Target.Delta, orders...)
		if err != nil {
			t.Fatal(err)
		}
		if kind == NoiseSeeded && (g.Epsilon > whole.Epsilon || g.Epsilon < 0.999*whole.Epsilon || g.Epsilon > plan.Target.Epsilon) {
			t.Errorf("%s: epsilon %v, at whole orders %v, target %v", kind, g.Epsilon, whole.Epsilon, plan.Target.Epsilon)
		}
	}
	if !(noise[NoiseSeeded] > noise["simulated"]) || noise[NoiseSeeded] > 1.05*noise["simulated"] {
		t.Errorf("noise %v", noise)
	}
	t.Logf("noise %v", noise)
}
