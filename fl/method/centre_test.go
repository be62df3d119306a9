package method_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/sim"
)

// answered is one participant's answer in a round that begins with some models: its
// release, and the participant afterwards.
func answered(t *testing.T, set []string, p fl.Participant, round int, hypotheses ...float64) ([]float64, *fl.Participant) {
	t.Helper()
	run, err := config.Resolve(nil, set, sim.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	a, err := fl.New(run, model.Linear{Features: 2}, 4)
	if err != nil {
		t.Fatal(err)
	}
	kept := p.Kept
	if err := a.Prepare(&p); err != nil {
		t.Fatal(err)
	}
	if kept.Personal != nil {
		copy(p.Personal, kept.Personal)
	}
	st := a.Start()
	st.Round = round
	copy(st.Hypotheses, hypotheses)
	b, err := a.Broadcast(st)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, a.ReleaseLength())
	if released, err := a.Respond(new(fl.Worker), b, &p, out); err != nil || !released {
		t.Fatalf("released %v: %v", released, err)
	}
	return out, &p
}

// rowsOn are rows that a model fits without error.
func rowsOn(theta ...float64) *data.Client {
	r := data.Rows{Features: 2}
	for i := range 20 {
		x := []float64{math.Sin(float64(i)), math.Cos(float64(3 * i))}
		r.X = append(r.X, x...)
		r.Y = append(r.Y, theta[0]*x[0]+theta[1]*x[1])
	}
	return &data.Client{Rows: r}
}

// TestUpdatesLieAroundThePublicCentre: under update-level privacy what is released is
// held against the server's model, never against the participant's own, which is
// private: a release lies within the public radius of the centre, but for noise.
func TestUpdatesLieAroundThePublicCentre(t *testing.T) {
	for _, method := range []string{"mr-mtl", "mocha", "ditto", "finetune", "fedavg"} {
		set := []string{"algorithm.kind=" + method, "algorithm.mode=sound", "privacy.protects=update", "privacy.radius=0.01", "privacy.noise_multiplier=1"}
		far := fl.Participant{Data: rowsOn(100, 100)}
		if method != "fedavg" {
			far.Personal = []float64{100, 100}
		}
		out, _ := answered(t, set, far, 0, 0, 0)
		// The noise has norm Gamma(2, 0.005): above 1 it is never seen.
		if math.Hypot(out[0], out[1]) > 1 {
			t.Errorf("%s: released %v around a model at 0, with a radius of 0.01", method, out)
		}
	}
}

// TestNearestReadsNoData: the rule nearest goes by the participant's own last release,
// and before the first one by its number, whatever its examples say. What it releases is
// what it goes by in the next round.
func TestNearestReadsNoData(t *testing.T) {
	for _, protects := range []string{"example", "nothing"} {
		for _, clustering := range []string{"declared", "k-means"} {
			set := []string{
				"algorithm.kind=ifca", "algorithm.clustering=" + clustering, "algorithm.hypotheses=2", "algorithm.selection.rule=nearest",
				"algorithm.selection.share=1", "privacy.protects=" + protects, "algorithm.local.step=1e-6",
			}
			if protects == "example" {
				set = append(set, "privacy.epsilon=6")
			}
			for _, fits := range []int{0, 1} {
				mine := rowsOn(5-10*float64(fits), 0) // fits model 0 at (5, 0), or model 1 at (-5, 0)
				for _, id := range []int{2, 3} {
					out, p := answered(t, set, fl.Participant{ID: id, Data: mine}, 0, 5, 0, -5, 0)
					if p.Cluster != id%2 {
						t.Errorf("%s, %s: number %d begins in cluster %d", protects, clustering, id, p.Cluster)
					}
					if !slices.Equal(p.Last, out[:2]) {
						t.Errorf("%s, %s: it goes by %v, and released %v", protects, clustering, p.Last, out[:2])
					}
				}
				for want, last := range [][]float64{{4, 1}, {-4, 1}} {
					_, p := answered(t, set, fl.Participant{ID: 2, Data: mine, Kept: fl.Kept{Last: last}}, 1, 5, 0, -5, 0)
					if p.Cluster != want {
						t.Errorf("%s, %s: after a release at %v it is in cluster %d", protects, clustering, last, p.Cluster)
					}
				}
			}
		}
	}
}

// TestNamedClustersAreNotCoveredByNoiseOnUpdates: a cluster that a participant names was
// chosen by its data, which noise on the update does not pay for.
func TestNamedClustersAreNotCoveredByNoiseOnUpdates(t *testing.T) {
	for _, method := range []string{"kind=ifca", "kind=mr-mtl algorithm.warm_start=0.5"} {
		run := config.Default("synthetic", "ifca", "sound")
		if method != "kind=ifca" {
			run = config.Default("synthetic", "mr-mtl", "sound")
			run.Algorithm.WarmStart, run.Algorithm.Hypotheses = 0.5, 2
		}
		run.Privacy.Protects, run.Privacy.NoiseMultiplier, run.Privacy.Radius = "update", 5, 0.3
		if faults := fl.Check(run); len(faults) > 0 {
			t.Fatalf("%s: %v", method, faults)
		}
		run.Algorithm.Clustering = "declared"
		if faults := fl.Check(run); len(faults) != 1 || faults[0].Path != "algorithm.clustering" {
			t.Errorf("%s: %v", method, faults)
		}
	}
}

// TestStepsOfARemainder: what is counted as steps is what is trained: 20 rows in batches
// of 8 are three steps with the rest, two without.
func TestStepsOfARemainder(t *testing.T) {
	for remainder, steps := range map[string]int{"keep": 3, "drop": 2} {
		set := []string{"algorithm.kind=fedavg", "algorithm.local.batch=8", "algorithm.local.epochs=2", "algorithm.local.remainder=" + remainder}
		_, p := answered(t, set, fl.Participant{Data: rowsOn(1, 1)}, 0, 0, 0)
		if got := fmt.Sprint(p.Plan.Steps, p.Plan.Local); got != fmt.Sprint(2*steps, 2*steps) {
			t.Errorf("%s: steps %s, want %d", remainder, got, 2*steps)
		}
	}
}
