package model_test

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/model"
)

// Train a logistic regression with DP-SGD on your own arrays: rows of features, and a
// class for each. The plan says what single rows may lose, and finds the noise; the
// release is paid for, and the steps draw what was paid, with exact noise from the
// system's entropy. A step more, or less noise, would be an error.
func ExampleLearner() {
	mine := data.Client{Rows: data.Rows{Features: 2}}
	for i := range 1000 { // your arrays: one row of X after another, and a Y for each
		a, b := math.Sin(float64(i)), math.Cos(float64(3*i))
		mine.X = append(mine.X, a, b)
		mine.Y = append(mine.Y, max(0, min(1, math.Ceil(a+b))))
	}
	m := model.Linear{Features: 2, Intercept: true, Loss: model.CrossEntropy, Classes: 2}
	plan, cost, err := account.Training{
		Terms:    account.Terms{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved},
		Trust:    event.TrustLocal,
		Sampling: event.Poisson, Rate: 0.1, Steps: 200,
		Lattice: &account.Lattice{Coordinates: int64(m.Parameters())},
	}.WithNoiseFor(account.MethodRDP, 1, 1e-5) // epsilon 1 at delta 1e-5
	check(err)
	release, err := plan.Release()
	check(err)
	paid, err := mech.NewPaid(release) // a participant reserves it in its ledger first
	check(err)
	var steps mech.Steps
	rule := mech.StepRule{Clip: 1, Noise: plan.Noise, Sampling: plan.Sampling, Rate: plan.Rate}
	check(steps.Open(paid, rule, mech.SystemEntropy(), mech.Randomness{Exact: mech.SystemEntropy()}))
	learner, err := m.Learner()
	check(err)
	theta := make([]float64, m.Parameters())
	pass := model.Pass{Step: model.Step{Paid: &steps, Divisor: 100}, Count: int(plan.Steps), StepSize: 0.5}
	check(learner.Train(theta, &mine, &pass))
	_, wrong, err := learner.Judge(theta, &mine)
	check(err)
	fmt.Printf("epsilon %.3f at delta %g (%s), noise %.3f\n", cost.Epsilon, cost.Delta, cost.Claim, plan.Noise)
	fmt.Println("fewer than 100 of 1000 wrong:", wrong < 100)
	// Output:
	// epsilon 1.000 at delta 1e-05 (proved), noise 5.889
	// fewer than 100 of 1000 wrong: true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
