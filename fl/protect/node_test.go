package protect_test

import (
	"strings"
	"testing"

	_ "github.com/coterie-fl/coterie/all" // every data set and method
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/sim"
)

// peopleRun is a small population, trained with the study's settings.
func peopleRun(t *testing.T, set ...string) (config.Run, error) {
	t.Helper()
	return config.Resolve([]byte("name: people\ndata: {kind: pandemic, persons: 2000}\n"), append([]string{"algorithm.mode=sound"}, set...), sim.Checks()...)
}

// TestNodesArePaidFor: every rule's claim is about its own relation, and its noise is what
// the accountant asks for as many examples as change.
func TestNodesArePaidFor(t *testing.T) {
	for contacts, want := range map[string]struct {
		relation event.Relation
		claim    event.Claim
		examples int64
	}{
		"nominated": {event.OwnRecord, event.ClaimProved, 6},
		"home":      {event.Removal, event.ClaimProved, 8},
		"pruned":    {event.Removal, event.ClaimHeuristic, 6},
		"drawn":     {event.Removal, event.ClaimHeuristic, 20},
	} {
		mode := "sound"
		if want.claim != event.ClaimProved {
			mode = "paper"
		}
		run, err := peopleRun(t, "privacy.nodes.contacts="+contacts, "algorithm.mode="+mode)
		if err != nil {
			t.Fatal(err)
		}
		s, err := sim.New(run, data.NewFolder(""))
		if err != nil {
			t.Fatal(err)
		}
		for more := true; more; {
			if more, err = s.Step(); err != nil {
				t.Fatal(err)
			}
		}
		res, err := s.Result()
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		p := res.Privacy
		if p.Unit != event.UnitNode || p.Relation != want.relation || p.Claim != want.claim || float64(p.Epsilon) > 1 || float64(p.Epsilon) < 0.999 {
			t.Errorf("%s: %+v", contacts, p.Statement)
		}
		priced, err := account.Spend(event.Release{
			Unit: event.UnitNode, Relation: want.relation, Claim: want.claim, Trust: event.TrustHolder,
			What: event.Repeated{Times: 10, Of: event.NodeSum{Examples: want.examples, Noise: float64(res.Participants[0].Noise)}},
		}, account.MethodRDP, float64(p.Delta))
		if err != nil || priced.Epsilon != float64(p.Epsilon) {
			t.Errorf("%s: told epsilon %v, and %d examples cost %v: %v", contacts, p.Epsilon, want.examples, priced.Epsilon, err)
		}
		if list := strings.Join(p.NotCovered, "\n"); !strings.Contains(list, "predictions") || strings.Contains(list, "persons with several examples") {
			t.Errorf("%s: not covered: %s", contacts, list)
		}
	}
}

// TestNodesAreChecked: what a claim about persons cannot cover is refused, with what would
// do.
func TestNodesAreChecked(t *testing.T) {
	for set, want := range map[string]string{
		"privacy.delta=0.001":                "at most a tenth of one over privacy.public_size, 5e-05",
		"judge.evaluate.epsilon=1":           "people are judged by their own later days",
		"privacy.public_size=0":              "privacy.public_size: is missing",
		"algorithm.local.batch=10":           "every step is on everybody",
		"privacy.protects=example":           "people are in each other's examples",
		"privacy.clipping.rule=online":       "learned from single examples",
		"privacy.records_per_person=2":       "a person is one here already",
		"privacy.nodes.contacts=drawn":       "allowed: nominated and home in sound mode",
		"privacy.nodes.contacts=everybody":   "nominated",
		"algorithm.kind=pca":                 "which sums rows",
		"algorithm.kind=ifca":                "a choice by persons is not accounted for",
		"data.partition=region":              "central trains where everybody is",
		"privacy.noise_multiplier=3":         "give one of them",
		"algorithm.local.loss=squared-error": "cross-entropy",
	} {
		run, err := peopleRun(t, set)
		if err == nil {
			_, err = sim.New(run, data.NewFolder(""))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
}

// TestSilosOfPeople: regions train together and alone, each with a claim of its own.
func TestSilosOfPeople(t *testing.T) {
	for method, more := range map[string][]string{
		"fedavg": nil, "local": {"judge.by=own"}, "finetune": {"judge.by=own"}, "mr-mtl": {"judge.by=own", "algorithm.lambda=0.01"},
	} {
		run, err := peopleRun(t, append(more, "data.partition=region", "algorithm.kind="+method, "algorithm.rounds=3", "algorithm.local.steps=2")...)
		if err != nil {
			t.Errorf("%s: %v", method, err)
			continue
		}
		s, err := sim.New(run, data.NewFolder(""))
		if err != nil {
			t.Errorf("%s: %v", method, err)
			continue
		}
		for going := true; going; {
			if going, err = s.Step(); err != nil {
				t.Fatalf("%s: %v", method, err)
			}
		}
		res, err := s.Result()
		s.Close()
		if err != nil || len(res.Participants) != 10 || res.Privacy.Claim != event.ClaimProved || res.Privacy.Relation != event.OwnRecord {
			t.Errorf("%s: %d participants, %+v, %v", method, len(res.Participants), res.Privacy.Statement, err)
		}
	}
}
