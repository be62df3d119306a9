package fl_test

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
)

// TestSiloTargetsAreKept: after all rounds a silo has spent its target, and no more;
// extra passes and choices are part of it.
func TestSiloTargetsAreKept(t *testing.T) {
	train, _ := fltest.Silos(3, 45, fltest.Features, 0.2)
	noise := map[string]float64{}
	for name, run := range fltest.Variants() {
		for _, mode := range []string{"paper", "sound"} {
			if mode == "sound" {
				run.Algorithm.Mode, run.Privacy.Relation = "sound", "replace-one"
				if run.Privacy.Protects == "client" {
					run.Privacy.Relation = "add-remove"
				}
			}
			_, ps, _ := fltest.Federate(t, run, train)
			g, proved, err := ps[0].Plan.Spend(ps[0].Paid)
			if err != nil {
				t.Fatal(err)
			}
			if g.Epsilon > run.Privacy.Epsilon || g.Epsilon < 0.999*run.Privacy.Epsilon {
				t.Errorf("%s, %s: spent %v of %v", name, mode, g.Epsilon, run.Privacy.Epsilon)
			}
			heuristic := mode == "paper" && run.Privacy.Protects != "client"
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

// TestOwnTargets: a silo that is named has its own target; several records of one
// person are converted by group privacy, and back.
func TestOwnTargets(t *testing.T) {
	train, _ := fltest.Silos(3, 40, fltest.Features, 0.2)
	run := fltest.Run("mr-mtl")
	run.Privacy.Silos = []config.SiloTarget{{Name: "silo 1", Epsilon: 1, Delta: 1e-5}, {Name: "silo 2", RecordsPerPerson: 3}}
	_, ps, _ := fltest.Federate(t, run, train)
	if a, b := ps[0].Plan.Target, ps[1].Plan.Target; a != (fl.Target{6, 1e-3, 1, 0}) || b != (fl.Target{1, 1e-5, 1, 0}) {
		t.Errorf("targets %+v and %+v", a, b)
	}
	if !(ps[1].Plan.Noise > ps[0].Plan.Noise) || !(ps[2].Plan.Noise > ps[0].Plan.Noise) {
		t.Errorf("noise %v, %v, %v", ps[0].Plan.Noise, ps[1].Plan.Noise, ps[2].Plan.Noise)
	}
	e, d := ps[2].Plan.Target.PerRecord()
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
	train, _ := fltest.Silos(2, 40, fltest.Features, 0.2)
	for _, noise := range []float64{3, 1.5, 0.4, 0} {
		run := fltest.Run("mr-mtl")
		run.Privacy.Epsilon, run.Privacy.NoiseMultiplier, run.Privacy.Delta, run.Privacy.RecordsPerPerson = 0, noise, 1e-3, 4
		_, ps, _ := fltest.Federate(t, run, train)
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
		again, err := plan.Training(ps[0].Paid.Rounds, 0, false).Guarantee(account.MethodRDP, g.Delta)
		if err != nil || again.Epsilon != g.Epsilon {
			t.Errorf("noise %v: the accountant says %v at %v, told is %v: %v", noise, again.Epsilon, g.Delta, g.Epsilon, err)
		}
	}
}

// TestExactNoiseIsCalibratedAtWholeOrders: a silo whose noise is exact adds as much as
// whole orders ask for, and states what they give; one with simulated noise is as it was.
func TestExactNoiseIsCalibratedAtWholeOrders(t *testing.T) {
	train, _ := fltest.Silos(2, 40, fltest.Features, 0.2)
	noise := map[string]float64{}
	for _, kind := range []string{"simulated", fl.NoiseSeeded} {
		run := fltest.Run("mr-mtl")
		run.Algorithm.Mode, run.Privacy.Accounting, run.Privacy.PublicSize, run.Algorithm.Weights = "sound", "sound", 40, "equal"
		run.Data.Standardise, run.Privacy.Noise = "none", kind
		_, ps, _ := fltest.Federate(t, run, train)
		plan := &ps[0].Plan
		if plan.Drawn != event.Poisson {
			t.Fatalf("batches are drawn by %s", plan.Drawn)
		}
		noise[kind] = plan.Noise
		g, _, err := plan.Spend(ps[0].Paid)
		if err != nil {
			t.Fatal(err)
		}
		r, err := plan.Training(ps[0].Paid.Rounds, 0, false).Release()
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
		if kind == fl.NoiseSeeded && (g.Epsilon > whole.Epsilon || g.Epsilon < 0.999*whole.Epsilon || g.Epsilon > plan.Target.Epsilon) {
			t.Errorf("%s: epsilon %v, at whole orders %v, target %v", kind, g.Epsilon, whole.Epsilon, plan.Target.Epsilon)
		}
	}
	if !(noise[fl.NoiseSeeded] > noise["simulated"]) || noise[fl.NoiseSeeded] > 1.05*noise["simulated"] {
		t.Errorf("noise %v", noise)
	}
	t.Logf("noise %v", noise)
}

// TestRunsShareATarget: the releases of as many runs as share a target keep it together,
// with their choices, and spend it; one of them spends less.
func TestRunsShareATarget(t *testing.T) {
	const runs = 4
	train, _ := fltest.Silos(3, 45, fltest.Features, 0.2)
	for name, run := range fltest.Variants() {
		if run.Privacy.Epsilon == 0 {
			continue
		}
		run.Privacy.Runs = runs
		run.Algorithm.Selection.EpsilonShare = 0.01 // what choices of four runs leave something with
		_, ps, _ := fltest.Federate(t, run, train)
		one, _, err := ps[0].Plan.Spend(ps[0].Paid)
		if err != nil {
			t.Fatal(err)
		}
		algorithm := fltest.New(t, run, len(train))
		release, _, err := algorithm.PriceAhead(fltest.Prepared(t, algorithm, fl.Participant{Name: "silo 0", Data: &train[0]}), 0)
		if err != nil {
			t.Fatal(err)
		}
		release.What = event.Repeated{Times: runs, Of: release.What}
		all, err := account.Spend(release, account.MethodRDP, run.Privacy.Delta)
		if err != nil {
			t.Fatal(err)
		}
		if all.Epsilon > run.Privacy.Epsilon || all.Epsilon < 0.999*run.Privacy.Epsilon || one.Epsilon > 0.7*run.Privacy.Epsilon {
			t.Errorf("%s: %d runs cost %v of %v, one %v", name, runs, all.Epsilon, run.Privacy.Epsilon, one.Epsilon)
		}
	}
}
