package sim

import (
	"math"
	"os"
	"reflect"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data/contacts"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/model"
)

func peopleRun(t *testing.T, set ...string) config.Run {
	t.Helper()
	run, err := config.Resolve([]byte("name: people\ndata: {kind: pandemic, persons: 3000, population_seed: 22}\nalgorithm: {mode: sound}\n"), set, Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// TestUntrainedBesideARun: of people in one place every figure is that of its score, by
// another computation, and the difference is the two figures'.
func TestUntrainedBesideARun(t *testing.T) {
	res := finish(t, peopleRun(t))
	u := res.Untrained
	p, err := contacts.Generate(t.Context(), contacts.Settings{Persons: 3000, Seed: 22})
	if err != nil {
		t.Fatal(err)
	}
	g := p.Graph()
	ill := 0
	for i := range g.Persons() {
		if _, falls := g.Label(i, g.Days); falls {
			ill++
		}
	}
	if u == nil || u.Persons != g.Persons() || u.Positives != ill || ill == 0 || res.Population == nil || res.Population.Persons != g.Persons() {
		t.Fatalf("untrained %+v; %d of %d fall ill", u, ill, g.Persons())
	}
	if a, b := u.AveragePrecision, res.Metrics.AveragePrecision; a.Value != b.Value || a.Low == nil || res.Participants[0].Figures.AveragePrecision.Low == nil || res.Participants[0].Untrained != nil {
		t.Errorf("the model's average precision is %+v, by the task %+v", a, b)
	}
	highest := event.Number(0)
	for k, r := range g.Rivals(g.Days) {
		a := metrics.Answers{Each: 1}
		for i, s := range r.Scores {
			a.Outputs, a.Targets = append(a.Outputs, float64(s)), append(a.Targets, 0)
			if g.Positive(i) {
				a.Targets[i] = 1
			}
		}
		want, err := metrics.OfClient(metrics.Task{Classes: 2, Loss: model.CrossEntropy}, a)
		if err != nil {
			t.Fatal(err)
		}
		got := u.Rivals[k]
		if got.Name != r.Name || math.Abs(float64(got.AveragePrecision.Value-want.AveragePrecision.Value)) > 1e-12 || math.Abs(float64(got.AUC.Value-want.AUC.Value)) > 1e-12 ||
			math.Abs(float64(got.Difference.Value-u.AveragePrecision.Value+got.AveragePrecision.Value)) > 1e-12 {
			t.Errorf("%s: %+v, want %v and %v", r.Name, got, want.AveragePrecision, want.AUC)
		}
		positive := make([]bool, len(r.Scores))
		for i := range positive {
			positive[i] = g.Positive(i)
		}
		over, err := metrics.Rank(r.Scores, positive, g.Household, res.Population.Households)
		if err != nil || !reflect.DeepEqual(over.AveragePrecision, got.AveragePrecision) {
			t.Errorf("%s: %+v over households, want %+v (%v)", r.Name, got.AveragePrecision, over.AveragePrecision, err)
		}
		highest = max(highest, got.AveragePrecision.Value)
	}
	if first := u.Rivals[0]; first.Name != contacts.Prevalence || math.Abs(float64(first.AveragePrecision.Value)-u.Prevalence()) > 1e-12 {
		t.Errorf("the first rival is %+v, the prevalence %v", first, u.Prevalence())
	}
	if best := u.Strongest(); best == nil || best.AveragePrecision.Value != highest || u.Verdict != verdict(best.Difference, false) {
		t.Errorf("the best rival is %+v, with the verdict %q", best, u.Verdict)
	}
}

// TestUntrainedOfSilos: regions' people are judged by what their own authority holds, and
// all of them together; a population whose next week nobody knows is not judged.
func TestUntrainedOfSilos(t *testing.T) {
	for _, judge := range []string{"test", "own"} {
		res := finish(t, peopleRun(t, "data.partition=region", "algorithm.kind=fedavg", "judge.by="+judge))
		persons, ill := 0, 0
		for _, l := range res.Participants {
			if l.Untrained == nil || l.Untrained.Persons != l.Examples || len(l.Untrained.Rivals) != 4 {
				t.Fatalf("%s: %s has %+v", judge, l.Name, l.Untrained)
			}
			persons, ill = persons+l.Untrained.Persons, ill+l.Untrained.Positives
		}
		if u := res.Untrained; len(res.Participants) != 10 || u.Persons != persons || u.Positives != ill || u.AveragePrecision == nil || u.Best == "" || res.Population == nil || res.Population.Persons != persons {
			t.Errorf("%s: all together %+v, of silos %d and %d", judge, res.Untrained, persons, ill)
		}
	}
	p, err := contacts.Generate(t.Context(), contacts.Settings{Persons: 300, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir() + "/people"
	if _, err := p.Write(t.Context(), folder, contacts.Writing{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(folder + "/disease_outcome_target.csv"); err != nil {
		t.Fatal(err)
	}
	run := peopleRun(t, "data.persons=0", "data.population_seed=0", "data.source.path="+folder, "privacy.public_size=300", "privacy.delta=1e-4")
	if u := finish(t, run).Untrained; u == nil || u.Positives != 0 || u.AveragePrecision != nil || u.Best != "" || u.Verdict != "" {
		t.Errorf("without a target: %+v", u)
	}
}
