package sim

import (
	"reflect"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
)

const evaluatedRun = `data: {kind: school, standardise: none}
algorithm: {kind: mr-mtl, mode: sound, rounds: 2, local: {step: 0.01, batch: 16}}
privacy: {protects: example, epsilon: 4, relation: replace-one, noise: exact}
judge: {by: own, evaluate: {epsilon: 8}}
`

// TestEvaluationInSimulation: it is made once, whatever noise there is; its figures are
// near those that a simulation has for nothing, by the noise that they tell; the models
// and all else are those of the run without it; the statement names the further release.
func TestEvaluationInSimulation(t *testing.T) {
	folder := smallSchools(t)
	result := func(text string) Result {
		t.Helper()
		run, err := config.Resolve([]byte(text), nil, Checks()...)
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(run, folder)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for more := true; more; {
			if more, err = s.Step(); err != nil {
				t.Fatal(err)
			}
		}
		first, err := s.Result()
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.Result()
		if err != nil || !reflect.DeepEqual(first.Evaluation, again.Evaluation) {
			t.Errorf("a second look makes a second release: %+v, %+v, %v", first.Evaluation, again.Evaluation, err)
		}
		return first
	}
	with := result(strings.Replace(evaluatedRun, "noise: exact", "noise: exact-seeded", 1))
	result(evaluatedRun)
	e := with.Evaluation
	if e == nil || e.Participants != 6 || e.RMSE == nil || e.MAE == nil || e.Accuracy != nil || e.Privacy.Claim != event.ClaimProved || e.Privacy.Relation != event.ReplaceOne {
		t.Fatalf("%+v", e)
	}
	for name, pair := range map[string][2]float64{
		"RMSE": {float64(e.RMSE.Value-with.Metrics.RMSE.Value) / float64(e.RMSE.NoiseSD), 6},
		"MAE":  {float64(e.MAE.Value-with.Metrics.MAE.Value) / float64(e.MAE.NoiseSD), 6},
	} {
		if pair[0] > pair[1] || pair[0] < -pair[1] {
			t.Errorf("%s is off by %v deviations of its noise", name, pair[0])
		}
	}
	if !strings.Contains(strings.Join(with.Privacy.Says, "\n"), "evaluation round is one more release") {
		t.Errorf("%q does not name the evaluation", with.Privacy.Says)
	}
	for _, text := range []string{
		strings.Replace(evaluatedRun, "noise: exact", "noise: exact-seeded", 1),
		// Its models are rounded when they are sent, and returned as they were.
		"data: {kind: synthetic, users: 6, validation_users: 3, samples: 30, test_share: 0.3}\nalgorithm: {kind: group-private, mode: sound, hypotheses: 2, rounds: 3, clients_per_round: 4}\nprivacy: {noise: exact-seeded}\njudge: {by: clients, evaluate: {epsilon: 8}}\n",
	} {
		with, without := result(text), result(strings.Replace(text, ", evaluate: {epsilon: 8}", "", 1))
		if with.Evaluation == nil || without.Evaluation != nil || !reflect.DeepEqual(without.Metrics, with.Metrics) || !reflect.DeepEqual(without.History, with.History) || without.Privacy.Epsilon != with.Privacy.Epsilon {
			t.Errorf("the evaluation changes the run that it judges: %s", text)
		}
	}
}

// TestNothingHeldOutIsAFault: an evaluation of nothing is refused before training.
func TestNothingHeldOutIsAFault(t *testing.T) {
	run, err := config.Resolve([]byte("algorithm: {kind: fedavg, mode: sound}\njudge: {evaluate: {epsilon: 1}}\n"), nil, Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(run, nil); err == nil || !strings.Contains(err.Error(), "judge.evaluate") || !strings.Contains(err.Error(), "data.test_share") {
		t.Errorf("%v; want what to do", err)
	}
}
