package sim_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/sim"
)

// Kinds of data for these tests: eight silos of rows with 3 features whose targets are 2
// or 3 classes, or values between 20 and 120 that are scaled to 0…1, or the rows themselves.
func init() {
	for name, classes := range map[string]int{"test-two": 2, "test-three": 3, "test-scaled": 0, "test-mirror": 0} {
		mirror := name == "test-mirror"
		data.Register(data.Kind{
			DataKind: config.DataKind{Name: name, Method: "mr-mtl", OwnTest: true, Settings: func(r *config.Run) {
				r.Data.TestShare, r.Judge.By, r.Algorithm.ClientsPerRound, r.Algorithm.Local.Batch = 0.3, "own", 0, 16
				r.Model.Intercept, r.Algorithm.Stop = true, config.Stop{Return: "last", Every: 1}
				r.Algorithm.Local.Loss = "cross-entropy"
				if classes == 0 {
					r.Algorithm.Local.Loss = "squared-error"
				}
			}},
			Shape: func(config.Data) (data.Shape, bool) {
				return data.Shape{Features: 3, Classes: classes, Reconstruct: mirror}, true
			},
			Words: func(config.Data) string { return "Rows for a test" },
			Load: func(_ *data.Folder, _ config.Data, seed uint64) (*data.Federation, error) {
				f := &data.Federation{Features: 3, Classes: classes, Reconstruct: mirror}
				if classes == 0 && !mirror {
					f.Unit = [2]float64{20, 120}
				}
				for i := range 8 {
					c := testRows(seed, i, 60+20*i, classes)
					held := testRows(seed, 100+i, 40, classes)
					c.Held, c.Name = &held, fmt.Sprintf("silo %d", i)
					f.Train = append(f.Train, c)
				}
				return f, nil
			},
		})
	}
}

// testRows are drawn so that the first features tell the class, or the value.
func testRows(seed uint64, client, n, classes int) data.Client {
	family := rng.NewFamily(seed, "test rows")
	src := family.Stream(0, client)
	c := data.Client{Rows: data.Rows{Features: 3}}
	for range n {
		x := []float64{rng.Normal(src), rng.Normal(src), rng.Normal(src)}
		y := min(1, max(0, 0.5+0.1*x[0]+0.02*rng.Normal(src)))
		if classes > 0 {
			y = math.Floor(min(0.999, max(0, 0.5+0.25*x[0]+0.2*x[1]+0.15*rng.Normal(src))) * float64(classes))
		}
		c.X, c.Y = append(c.X, x...), append(c.Y, y)
	}
	return c
}

func finished(t *testing.T, text string, set ...string) sim.Result {
	t.Helper()
	run, err := config.Resolve([]byte(text), set, sim.Checks()...)
	if err != nil {
		t.Fatalf("%s %v: %v", text, set, err)
	}
	s, err := sim.New(run, nil)
	if err != nil {
		t.Fatalf("%s %v: %v", text, set, err)
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

// TestClassifiersUnderEveryMethodAndProtection: logistic and softmax regression and
// networks on rows, with class weights and the focal loss, train wherever the cross table
// has a cell.
func TestClassifiersUnderEveryMethodAndProtection(t *testing.T) {
	network := func(outputs int) string {
		return fmt.Sprintf("{kind: network, layers: [{kind: linear, units: 4}, {kind: tanh}, {kind: linear, units: %d}]}", outputs)
	}
	for name, c := range map[string]struct{ kind, model, local string }{
		"logistic": {"test-two", "{kind: linear}", "class_weights: [1, 3]"},
		"focal":    {"test-two", "{kind: linear}", "loss: focal"},
		"softmax":  {"test-three", "{kind: linear}", "class_weights: [1, 2, 0.5]"},
		"network":  {"test-three", network(3), "loss: focal, focal_gamma: 1, class_weights: [1, 2, 0.5]"},
		"one unit": {"test-two", network(1), "loss: focal, focal_alpha: 0.6"},
	} {
		for _, method := range fl.Methods() {
			for _, protects := range fl.Protections() {
				if crossTable[method][protects].refused != "" || strings.HasPrefix(method, "pca") { // which finds no classes
					continue
				}
				text := fmt.Sprintf("data: {kind: %s}\nmodel: %s\nalgorithm: {kind: %s, local: {%s}}\n", c.kind, c.model, method, c.local)
				res := finished(t, text, needs(protects, "sound")...)
				if m := res.Metrics; m.Accuracy == nil || m.AUC == nil || m.AveragePrecision == nil || (c.kind == "test-two") != (m.Brier != nil) || (c.kind == "test-two") != (res.History.Curves != nil) {
					t.Errorf("%s, %s, %s: %+v", name, method, protects, m)
				}
			}
		}
	}
}

// TestFiguresOfARun: of all, with intervals over clients, and of every participant, with
// intervals over its rows, in the target's unit; nothing that does not apply.
func TestFiguresOfARun(t *testing.T) {
	plain := []string{"privacy.protects=nothing", "algorithm.rounds=60"}
	two := finished(t, "data: {kind: test-two}\nalgorithm: {kind: mr-mtl}\n", plain...)
	right, n := 0.0, 0.0
	for _, l := range two.Participants {
		f := l.Figures
		if f == nil || f.Accuracy.Low == nil || f.AUC == nil || f.RMSE != nil || math.Abs(float64(f.Accuracy.Value)+float64(*l.Error)-1) > 1e-12 || math.Abs(float64(f.LogLoss.Value-*l.Loss)) > 1e-9 {
			t.Fatalf("%s: %+v, error %v", l.Name, f, *l.Error)
		}
		right, n = right+float64(f.Accuracy.Value)*40, n+40
	}
	if m := two.Metrics; math.Abs(float64(m.Accuracy.Value)-right/n) > 1e-12 || m.AUC.Value < 0.9 || m.AUC.Low == nil || m.CalibrationSlope == nil || m.CalibrationIntercept == nil || len(two.History.Curves.ROC) < 10 {
		t.Errorf("%+v", m)
	}
	scaled := finished(t, "data: {kind: test-scaled}\nalgorithm: {kind: mr-mtl}\n", plain...)
	if m := scaled.Metrics; m.RMSE == nil || math.Abs(float64(m.RMSE.Value)-100*math.Sqrt(float64(m.Loss))) > 1e-9 || m.Accuracy != nil || scaled.History.Curves != nil || m.R2.Value < 0.5 {
		t.Errorf("RMSE %v for a loss of %v", m.RMSE, m.Loss)
	}
	for _, l := range scaled.Participants {
		if math.Abs(float64(l.Figures.RMSE.Value)-100*math.Sqrt(float64(*l.Loss))) > 1e-9 {
			t.Errorf("%s: RMSE %v for a loss of %v", l.Name, l.Figures.RMSE.Value, *l.Loss)
		}
	}
	// Rows that a network of one unit gives back: their mean squared error, and no other figure.
	given := finished(t, "data: {kind: test-mirror}\nmodel: {kind: network, layers: [{kind: linear, units: 1}, {kind: linear, units: 3}]}\nalgorithm: {kind: mr-mtl}\n", plain...)
	if m := given.Metrics; m.MSE == nil || math.Abs(float64(m.MSE.Value-m.Loss)) > 1e-12 || m.MSE.Low == nil || m.MSE.Value < 0.3 || m.MSE.Value > 0.9 || m.RMSE != nil || m.R2 != nil || m.Accuracy != nil || m.Error != nil {
		t.Errorf("rows given back: %+v, MSE %v for a loss of %v", m.Figures, m.MSE, m.Loss)
	}
	for _, l := range given.Participants {
		if f := l.Figures; math.Abs(float64(f.MSE.Value-*l.Loss)) > 1e-12 || f.MSE.Low == nil || f.MAE != nil {
			t.Errorf("%s: MSE %v for a loss of %v", l.Name, f.MSE.Value, *l.Loss)
		}
	}
	// One test set is told apart by who holds it.
	one := finished(t, "data: {kind: test-two}\nalgorithm: {kind: fedavg}\njudge: {by: test}\n", append(plain, "privacy.protects=example", "privacy.epsilon=4")...)
	for _, l := range one.Participants {
		if l.Figures == nil || l.Figures.Accuracy == nil {
			t.Errorf("%s has no figures", l.Name)
		}
	}
}

func TestWeightsMoveTheAnswers(t *testing.T) {
	share := func(set ...string) float64 {
		res := finished(t, "data: {kind: test-two}\nalgorithm: {kind: fedavg, rounds: 60}\nprivacy: {protects: nothing}\n", set...)
		return float64(res.Metrics.CalibrationIntercept.Value)
	}
	plain, heavy := share(), share("algorithm.local.class_weights=[1, 20]")
	// Class 1 weighing 20 times as much moves the logits up by log 20; the recalibration
	// takes it back.
	if math.Abs(plain) > 0.5 || math.Abs(heavy-plain+math.Log(20)) > 0.6 {
		t.Errorf("the intercept is %v, with weights %v, want %v less", plain, heavy, math.Log(20))
	}
}

func TestCheckCompare(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		says []string
	}{
		"fine":         {"data: {kind: test-two}\nalgorithm: {kind: mr-mtl, lambda: 0.3}\njudge: {compare: [local, fedavg, ifca]}\n", nil},
		"from fedavg":  {"data: {kind: test-two}\nalgorithm: {kind: fedavg, stop: {return: best, patience: 3}}\njudge: {compare: [local]}\n", nil},
		"from ifca":    {"data: {kind: test-two}\nalgorithm: {kind: ifca, hypotheses: 3}\njudge: {compare: [local, fedavg]}\n", nil},
		"unknown":      {"data: {kind: test-two}\njudge: {compare: [locals]}\n", []string{`judge.compare.0: is "locals"; allowed: [central ditto`}},
		"itself":       {"data: {kind: test-two}\nalgorithm: {kind: fedavg}\njudge: {compare: [fedavg]}\n", []string{"the run's own method"}},
		"twice":        {"data: {kind: test-two}\njudge: {compare: [local, local]}\n", []string{"a second time"}},
		"two at once":  {"data: {kind: synthetic}\njudge: {compare: [local, mocha]}\n", []string{"judge.compare.0: is local, which this file cannot train: judge.by", "judge.compare.0: is local, which this file cannot train: privacy.protects", "judge.compare.1: is mocha, which this file cannot train: algorithm.clients_per_round"}},
		"not repeated": {"data: {kind: test-two}\nalgorithm: {local: {loss: rmse, class_weights: [1, 1]}}\njudge: {compare: [local]}\nprivacy: {protects: nothing}\n", []string{"algorithm.local.class_weights: are given"}},
	} {
		_, err := config.Resolve([]byte(c.text), nil, sim.Checks()...)
		if (err == nil) != (c.says == nil) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, words := range c.says {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v, want %q", name, err, words)
			}
		}
		if faults, ok := err.(config.Faults); ok && len(faults) != len(c.says) {
			t.Errorf("%s: %d faults: %v", name, len(faults), err)
		}
	}
	run, err := config.Resolve([]byte("data: {kind: test-two}\nalgorithm: {kind: mr-mtl, lambda: 0.3, rounds: 7}\nprivacy: {protects: example, epsilon: 3}\njudge: {compare: [local]}\n"), nil, sim.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	v := sim.Variant(run, "local")
	if v.Algorithm.Rounds != 7 || v.Privacy.Epsilon != 3 || v.Seed != run.Seed || v.Algorithm.Kind != "local" || v.Judge.Compare != nil || v.Algorithm.Lambda == run.Algorithm.Lambda || !slices.Equal(run.Judge.Compare, []string{"local"}) {
		t.Errorf("%+v", v)
	}
}
