package protect_test

import (
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/sim"
)

// finished is a run to its end.
func finished(t *testing.T, run config.Run) sim.Result {
	t.Helper()
	s, err := sim.New(run, data.NewFolder(""))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for more := true; more; {
		if more, err = s.Step(); err != nil {
			t.Fatal(err)
		}
	}
	res, err := s.Result()
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestBatchesOfPersonsArePaidFor: steps on batches cost what the theorem says, of shuffled
// ones heuristically, of fresh ones from declared places as a proof; both stand beside steps
// on everybody.
func TestBatchesOfPersonsArePaidFor(t *testing.T) {
	for name, want := range map[string]struct {
		set      []string
		claim    event.Claim
		relation event.Relation
		node     event.NodeGaussian
		steps    int64
		sampling string
	}{
		"authors": {
			[]string{"algorithm.mode=paper", "data.inputs=authors", "data.neighbours=7", "algorithm.local.batch=100"},
			event.ClaimHeuristic, event.Removal, event.NodeGaussian{Nodes: 2000, Occurrences: 7, Batch: 100}, 40, "shuffle, accounted as without-replacement",
		},
		"authors' network": {
			[]string{"algorithm.mode=paper", "data.inputs=authors-node", "data.neighbours=2", "algorithm.local.batch=500", "model.kind=network", "model.layers=[{kind: linear, units: 3}, {kind: relu}, {kind: linear, units: 1}]"},
			event.ClaimHeuristic, event.Removal, event.NodeGaussian{Nodes: 2000, Occurrences: 2, Batch: 500}, 8, "shuffle, accounted as without-replacement",
		},
		"fresh": {
			[]string{"algorithm.local.batch=100", "algorithm.local.steps=15", "privacy.public_size=2100", "privacy.delta=1e-5"},
			event.ClaimProved, event.OwnRecord, event.NodeGaussian{Nodes: 2100, Occurrences: 6, Batch: 100}, 15, "without-replacement",
		},
	} {
		run, err := peopleRun(t, want.set...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		res := finished(t, run)
		p := res.Privacy
		if p.Claim != want.claim || p.Relation != want.relation || p.Unit != event.UnitNode || p.Sampling != want.sampling || float64(p.Epsilon) > 1 || float64(p.Epsilon) < 0.999 {
			t.Errorf("%s: %+v", name, p.Statement)
		}
		want.node.Noise, want.node.Formula = float64(res.Participants[0].Noise), event.Theorem
		if name != "fresh" { // the last household is whole
			want.node.Nodes = int64(res.Participants[0].Examples)
		}
		priced, err := account.Spend(event.Release{
			Unit: event.UnitNode, Relation: want.relation, Claim: want.claim, Trust: event.TrustHolder, What: event.Repeated{Times: want.steps, Of: want.node},
		}, account.MethodRDP, float64(p.Delta))
		if err != nil || priced.Epsilon != float64(p.Epsilon) {
			t.Errorf("%s: told epsilon %v, and the theorem has %v: %v", name, p.Epsilon, priced.Epsilon, err)
		}
		if b := p.Batches; b == nil || int64(b.Steps) != want.steps || int64(b.Examples) != want.node.Nodes || b.MeanNoise <= b.FullMeanNoise {
			t.Errorf("%s: %+v", name, b)
		}
	}
	run, err := peopleRun(t)
	if err != nil {
		t.Fatal(err)
	}
	if res := finished(t, run); res.Privacy.Batches != nil {
		t.Errorf("steps on everybody: %+v", res.Privacy.Batches)
	}
}

// TestAuthorsAreChecked: what the authors' inputs and batches cannot be is refused, with what
// would do.
func TestAuthorsAreChecked(t *testing.T) {
	for set, want := range map[string]string{
		"data.inputs=authors": "allowed in sound mode: pooled",
		"data.neighbours=7":   "data.neighbours",
		"model.kind=network model.layers=[{kind:linear,units:1}]":                                                                  "a network reads one",
		"algorithm.mode=paper data.inputs=authors algorithm.local.batch=0 model.kind=network model.layers=[{kind:linear,units:1}]": "set algorithm.local.batch",
		"algorithm.mode=paper model.kind=transformer":                                                                              "allowed: linear, network",
		"privacy.public_size=1500 algorithm.local.batch=10":                                                                        "declare 2",
	} {
		run, err := peopleRun(t, strings.Fields(set)...)
		if err == nil {
			_, err = sim.New(run, data.NewFolder(""))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
}
