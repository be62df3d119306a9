package protect

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
	"github.com/coterie-fl/coterie/model"
)

// updateOf is what one participant's round moves a model by.
func updateOf(t *testing.T, run config.Run, m model.Model, c *data.Client, round int, w *fl.Worker) []float64 {
	t.Helper()
	a, err := fl.New(run, m, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := &fl.Participant{Data: c}
	if err := a.Prepare(p); err != nil {
		t.Fatal(err)
	}
	st := a.Start()
	st.Round = round
	b, err := a.Broadcast(st)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, a.ReleaseLength())
	if _, err := a.Respond(w, b, p, out); err != nil {
		t.Fatal(err)
	}
	out = out[:m.Parameters()]
	for i := range out {
		out[i] -= b.Hypotheses[i]
	}
	return out
}

// everyPath are rounds of one step, with and without noise.
func everyPath() map[string]config.Run {
	group := config.Default("synthetic", "fedavg", "paper")
	group.Algorithm.Rounds = 8
	bare, private := fltest.Run("fedavg"), fltest.Run("fedavg")
	for _, run := range []*config.Run{&bare, &private} {
		run.Algorithm.Local, run.Algorithm.Rounds = config.Default("school", "fedavg", "paper").Algorithm.Local, 8
		run.Algorithm.Local.Batch = 0
	}
	bare = fltest.Unprotected(bare)
	return map[string]config.Run{"plain": group, "equal batches": bare, "private": private}
}

// TestSchedulesReachEveryPath: with the same noise, a step at half the size moves a
// model half as far.
func TestSchedulesReachEveryPath(t *testing.T) {
	train, _ := fltest.Silos(1, 20, fltest.Features, 0.2)
	m := model.Linear{Features: fltest.Features, Intercept: true, Loss: model.HalfSquaredError}
	for name, run := range everyPath() {
		want := updateOf(t, run, m, &train[0], 4, new(fl.Worker))
		run.Algorithm.Local.Schedule = "linear"
		got := updateOf(t, run, m, &train[0], 4, new(fl.Worker))
		for i := range want {
			if want[i] == 0 || math.Abs(got[i]-want[i]/2) > 1e-12 {
				t.Errorf("%s: an update of %v in the middle of the run, want half of %v", name, got, want)
				break
			}
		}
	}
}

// TestOptimisersReachEveryPath: Adam's first step has the same length in every
// coordinate, whatever the gradient and its noise.
func TestOptimisersReachEveryPath(t *testing.T) {
	train, _ := fltest.Silos(1, 20, fltest.Features, 0.2)
	m := model.Linear{Features: fltest.Features, Intercept: true, Loss: model.HalfSquaredError}
	for name, run := range everyPath() {
		run.Algorithm.Local.Optimiser = "adam"
		for _, d := range updateOf(t, run, m, &train[0], 0, new(fl.Worker)) {
			if math.Abs(math.Abs(d)-run.Algorithm.Local.Step) > 1e-6 {
				t.Errorf("%s: a coordinate moves by %v, want %v", name, d, run.Algorithm.Local.Step)
			}
		}
	}
}

// TestWorkersServeOtherSettings: a worker that trained with one step size trains with
// another method's own.
func TestWorkersServeOtherSettings(t *testing.T) {
	train, _ := fltest.Silos(1, 20, fltest.Features, 0.2)
	m := model.Linear{Features: fltest.Features, Intercept: true, Loss: model.HalfSquaredError}
	run := everyPath()["private"]
	w := new(fl.Worker)
	updateOf(t, run, m, &train[0], 0, w)
	run.Algorithm.Local.Step *= 3
	if got, want := updateOf(t, run, m, &train[0], 0, w), updateOf(t, run, m, &train[0], 0, new(fl.Worker)); !slices.Equal(got, want) {
		t.Errorf("%v, a new worker %v", got, want)
	}
}

// TestExamplesOfEveryModel: networks on rows and all losses of values, with privacy.
func TestExamplesOfEveryModel(t *testing.T) {
	train, _ := fltest.Silos(1, 20, fltest.Features, 0.2)
	run := everyPath()["private"]
	layers := []config.Layer{{Kind: "linear", Units: 3}, {Kind: "tanh"}, {Kind: "linear", Units: 1}}
	for _, block := range []config.Model{{Kind: "linear", Intercept: true}, {Kind: "network", Layers: layers}} {
		for _, loss := range []string{"squared-error", "half-squared-error"} {
			run.Model, run.Algorithm.Local.Loss = block, loss
			m, err := model.Of(run, data.Shape{Features: fltest.Features})
			if err != nil {
				t.Fatal(err)
			}
			for _, run.Privacy.Noise = range []string{"simulated", fl.NoiseSeeded} {
				if d := updateOf(t, run, m, &train[0], 0, new(fl.Worker)); slices.Contains(d, 0) {
					t.Errorf("%s, %s: %v", block.Kind, loss, d)
				}
			}
		}
	}
}

// TestRemainders: 25 rows in batches of 10 are two steps, or three with the rest.
func TestRemainders(t *testing.T) {
	train, _ := fltest.Silos(1, 25, fltest.Features, 0.2)
	run := everyPath()["equal batches"]
	run.Algorithm.Local.Batch = 10
	for remainder, steps := range map[string]int{"drop": 2, "keep": 3} {
		run.Algorithm.Local.Remainder = remainder
		var seen []string
		m := watched{model.Linear{Features: fltest.Features, Intercept: true, Loss: model.HalfSquaredError}, &seen}
		updateOf(t, run, m, &train[0], 0, new(fl.Worker))
		if len(seen) != steps || remainder == "keep" && strings.Count(seen[2], " ") != 4 {
			t.Errorf("%s: steps on %v", remainder, seen)
		}
	}
}

func TestCheckLocalTraining(t *testing.T) {
	for path, change := range map[string]func(*config.Run){
		"algorithm.local.loss":      func(r *config.Run) { r.Algorithm.Local.Loss = "rmse" },
		"algorithm.local.remainder": func(r *config.Run) { r.Algorithm.Local.Remainder = "keep" },
		"algorithm.lambda": func(r *config.Run) {
			r.Algorithm.Lambda, r.Algorithm.Local.Optimiser = config.LambdaAuto, "adam"
		},
	} {
		run := config.Default("school", "mr-mtl", "paper")
		if faults := fl.Check(run); faults != nil {
			t.Fatal(faults)
		}
		change(&run)
		if faults := fl.Check(run); len(faults) != 1 || faults[0].Path != path {
			t.Errorf("%s: %v", path, faults)
		}
	}
	run := config.Default("school", "mr-mtl", "paper")
	run.Algorithm.Lambda, run.Algorithm.Local.Schedule = config.LambdaAuto, "cosine"
	if faults := fl.Check(run); len(faults) != 1 || faults[0].Path != "algorithm.lambda" {
		t.Errorf("auto under a schedule: %v", faults)
	}
}

// TestSomePicturesMakeFewSteps: a round's steps are counted over the pictures that are
// drawn for it, not over all.
func TestSomePicturesMakeFewSteps(t *testing.T) {
	for limit, want := range map[int]int{0: 5, 4: 2, 99: 5} {
		q := &plain{cfg: config.Algorithm{Local: config.Local{Limit: limit, Batch: 2, Epochs: 1, Remainder: "drop"}}, outline: fl.Outline{Passes: 1}}
		p := &fl.Participant{Data: &data.Client{Pictures: data.Pictures{Images: new(data.Images), Index: make([]int, 11)}}}
		if err := q.Prepare(p); err != nil || p.Plan.Pass != want || p.Plan.Examples != 11 {
			t.Errorf("limit %d: %d steps over %d pictures, %v; want %d", limit, p.Plan.Pass, p.Plan.Examples, err, want)
		}
	}
}
