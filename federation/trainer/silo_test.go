package trainer_test

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/federation/trainer"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// oneStep is one paid step that has begun, with exact noise.
func oneStep(t *testing.T, clip, noise float64, e *mech.Entropy) *mech.Steps {
	t.Helper()
	rule := mech.StepRule{Clip: clip, Noise: noise, Sampling: event.Poisson, Rate: 1}
	paid, err := mech.NewPaid(event.Release{
		Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Trust: event.TrustLocal, What: rule.Event(event.ClaimProved),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := new(mech.Steps)
	if err := s.Open(paid, rule, mech.SystemEntropy(), mech.Randomness{Exact: e}); err != nil {
		t.Fatal(err)
	}
	if err := s.Blank(); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestGradientsAsTheModelHasThem: the trainer's protected gradient is that of the
// linear model in Go on the same rows, with the same noise.
func TestGradientsAsTheModelHasThem(t *testing.T) {
	_, tr := python(t, trainer.ModeMethod)
	rows := ward(t)
	linear := model.Linear{Features: 2, Loss: model.HalfSquaredError}
	gradient := func(m model.Model, clip float64) []float64 {
		family := rng.NewFamily(5, "test")
		step := &model.Step{Divisor: 10}
		if clip > 0 { // so small that all are clipped: the example's loss is twice as steep
			step.Paid = oneStep(t, clip, 2, mech.NewEntropy(family.Stream(1, 1)))
			step.Shift = []float64{0, 0}
		}
		dst := make([]float64, 2)
		l, err := m.Learner()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Gradient(dst, []float64{1, -1}, rows, []int{3, 4, 7, 150}, step); err != nil {
			t.Fatal(err)
		}
		return dst
	}
	want, got := gradient(linear, 1e-3), gradient(tr.InPlaceOf(linear, "squared-error"), 1e-3)
	plain, twice := gradient(linear, 0), gradient(tr.InPlaceOf(linear, "squared-error"), 0)
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-8 || math.Abs(twice[i]-2*plain[i]) > 1e-5 {
			t.Errorf("protected %v, want %v; plain %v, want twice %v", got, want, twice, plain)
		}
	}
	l, err := tr.InPlaceOf(linear, "squared-error").Learner()
	if err != nil {
		t.Fatal(err)
	}
	losses, rmse := make([]float64, rows.Len()), 0.0
	if err := l.Losses(losses, []float64{1, -1}, rows); err != nil {
		t.Fatal(err)
	}
	for _, e := range losses {
		rmse += e / float64(len(losses))
	}
	loss, wrong, err := l.Judge([]float64{1, -1}, rows)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(math.Sqrt(rmse)-loss) > 1e-5 || loss == 0 || wrong != 0 {
		t.Errorf("losses have the root mean %v, the trainer says %v, %d wrong", math.Sqrt(rmse), loss, wrong)
	}
	if err := l.Gradient(make([]float64, 2), []float64{1, -1}, rows, nil, &model.Step{Clip: 1, Divisor: 1}); err == nil {
		t.Error("clipping without exact noise was taken")
	}
}

// TestSiloMethodWithATrainer: a method that protects examples runs with a trainer, and
// pays for example-level privacy.
func TestSiloMethodWithATrainer(t *testing.T) {
	_, tr := python(t, trainer.ModeMethod)
	run, err := config.Resolve([]byte(siloRun), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := fl.New(run, tr.InPlaceOf(model.Linear{Features: 2, Loss: model.HalfSquaredError}, run.Algorithm.Local.Loss), 3)
	if err != nil {
		t.Fatal(err)
	}
	p := &purse{}
	me := &fl.Participant{Data: tr.Client(), Purse: p}
	if err := a.Prepare(me); err != nil {
		t.Fatal(err)
	}
	b, err := a.Broadcast(a.Start())
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, a.ReleaseLength())
	released, err := a.Respond(new(fl.Worker), b, me, out)
	if err != nil || !released || p.paid != 1 || p.last.Unit != event.UnitExample || tr.Failure() != nil {
		t.Errorf("released %v, paid %d times for %+v, %v", released, p.paid, p.last, err)
	}
}

const siloRun = `data: {kind: school}
algorithm: {kind: mr-mtl, mode: sound, rounds: 3}
privacy: {epsilon: 6, delta: 1e-4, clip: 1, noise: exact}
`
