package protect_test

import (
	"math"
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
		"thinned":   {event.Removal, event.ClaimProved, 0},
		"pruned":    {event.Removal, event.ClaimHeuristic, 6},
		"drawn":     {event.Removal, event.ClaimHeuristic, 20},
	} {
		mode := "sound"
		if want.claim != event.ClaimProved {
			mode = "paper"
		}
		set := []string{"privacy.nodes.contacts=" + contacts, "algorithm.mode=" + mode}
		if contacts == "thinned" {
			set = append(set, "privacy.nodes.degree=300", "privacy.nodes.keep=0.07")
		}
		run, err := peopleRun(t, set...)
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
		noise := float64(res.Participants[0].Noise)
		var step event.Event = event.NodeSum{Examples: want.examples, Noise: noise}
		if contacts == "thinned" {
			step = event.NodeThinned{Degree: 300, Keep: 0.07, Noise: noise}
			if told := strings.Join(p.Says, "\n"); !strings.Contains(told, "nobody has more than 300 contacts") {
				t.Errorf("the promise is not named: %s", told)
			}
		}
		priced, err := account.Spend(event.Release{
			Unit: event.UnitNode, Relation: want.relation, Claim: want.claim, Trust: event.TrustHolder,
			What: event.Repeated{Times: 10, Of: step},
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
		"privacy.protects=example":           "people are in each other's examples",
		"privacy.clipping.rule=online":       "learned from single examples",
		"privacy.records_per_person=2":       "a person is one here already",
		"privacy.nodes.contacts=drawn":       "allowed: nominated, home and thinned in sound mode",
		"privacy.nodes.contacts=everybody":   "nominated",
		"privacy.nodes.contacts=thinned":     "privacy.nodes.degree: is missing",
		"algorithm.kind=pca":                 "which sums rows",
		"algorithm.kind=ifca":                "a choice by persons is not accounted for",
		"data.partition=region":              "central trains where everybody is",
		"privacy.noise_multiplier=3":         "give one of them",
		"algorithm.local.loss=squared-error": "cross-entropy",
		"privacy.nodes.contacts=thinned privacy.nodes.degree=300 algorithm.local.batch=100": "priced for steps on everybody",
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

// TestSilosOfPeople: regions train together and alone, each with a claim of its own.
func TestSilosOfPeople(t *testing.T) {
	for method, more := range map[string][]string{
		"fedavg": nil, "local": nil, "finetune": nil, "mr-mtl": {"algorithm.lambda=0.01"},
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
		for i, want := range []int{680, 380, 260, 180, 140, 120, 90, 70, 50, 30} { // of 2000, by public shares
			if p := res.Participants[i]; p.Batch != want || float64(p.Target.Delta) != 0.1/float64(want) || p.Figures == nil {
				t.Errorf("%s: %s divides by %d at delta %v, want %d; figures %v", method, p.Name, p.Batch, p.Target.Delta, want, p.Figures)
			}
		}
	}
}

// TestSilosHaveTargets: every silo keeps what it asks for, at its own declared size, and the
// federation's number is the largest.
func TestSilosHaveTargets(t *testing.T) {
	run, err := config.Resolve([]byte(`name: people
data: {kind: pandemic, persons: 2000, partition: region}
algorithm: {kind: fedavg, mode: sound}
privacy:
  epsilon: 2
  silos:
  - {name: region-0, epsilon: 1, public_size: 700, delta: 0.0001}
  - {name: region-9, epsilon: 4, public_size: 40}
`), nil, sim.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
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
	if run.Algorithm.Lambda != "0.01" || float64(res.Privacy.Epsilon) < 3.99 || float64(res.Privacy.Epsilon) > 4 {
		t.Errorf("lambda %s, epsilon %v of all", run.Algorithm.Lambda, res.Privacy.Epsilon)
	}
	for i, want := range map[int]struct {
		epsilon, delta float64
		size           int
	}{0: {1, 1e-4, 700}, 5: {2, 0.1 / 2000, 2000}, 9: {4, 0.1 / 2000, 40}} {
		p := res.Participants[i]
		if math.Abs(float64(p.Epsilon)-want.epsilon) > 1e-3 || float64(p.Delta) != want.delta || p.Batch != want.size {
			t.Errorf("%s: epsilon %v, delta %v, size %d, want %+v", p.Name, p.Epsilon, p.Delta, p.Batch, want)
		}
	}
	for text, want := range map[string]string{
		"{name: region-0, public_size: 700, delta: 0.001}": "privacy.silos.0.delta: is 0.001, with which one of the 700 persons",
		"{name: region-0, records_per_person: 3}":          "a person is one here already",
		"{name: region-0}, {name: region-0}":               "stands twice",
	} {
		_, err := config.Resolve([]byte("data: {kind: pandemic, persons: 2000, partition: region}\nalgorithm: {kind: fedavg, mode: sound}\nprivacy: {silos: ["+text+"]}\n"), nil, sim.Checks()...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
