package account_test

import (
	"fmt"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// training is DP-SGD on 60,000 examples: Poisson batches of 256 on average, 10 epochs.
var training = account.Training{
	Terms:    account.Terms{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved},
	Trust:    event.TrustLocal,
	Sampling: event.Poisson, Rate: 256.0 / 60000, Steps: 2340, Noise: 1,
}

// What does a training cost? Two accountants answer; the tighter one takes longer.
func ExampleTraining_Guarantee() {
	for _, m := range []account.Method{account.MethodRDP, account.MethodPLD} {
		g, err := training.Guarantee(m, 1e-5)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: epsilon %.3f at delta %g\n", m, g.Epsilon, g.Delta)
	}
	// Output:
	// rdp: epsilon 1.352 at delta 1e-05
	// pld: epsilon 1.099 at delta 1e-05
}

// How much noise does a target need, and how many steps does a noise allow?
func ExampleTraining_WithNoiseFor() {
	plan, g, err := training.WithNoiseFor(account.MethodRDP, 2, 1e-5)
	if err != nil {
		panic(err)
	}
	fmt.Printf("noise %.4f keeps epsilon %.3f\n", plan.Noise, g.Epsilon)
	plan, g, err = training.WithStepsFor(account.MethodRDP, 2, 1e-5)
	if err != nil {
		panic(err)
	}
	fmt.Printf("noise 1 allows %d steps, epsilon %.3f\n", plan.Steps, g.Epsilon)
	// Output:
	// noise 0.8547 keeps epsilon 2.000
	// noise 1 allows 6160 steps, epsilon 2.000
}

// Say it as a reader needs it: with unit, relation, claim and trust.
func ExampleGuarantee_Sentence() {
	g, err := training.Guarantee(account.MethodRDP, 1e-5)
	if err != nil {
		panic(err)
	}
	fmt.Println(g.Sentence())
	// Output:
	// Every single example is protected with epsilon = 1.35157 and delta = 1e-05, whether it is in the data or not (add-remove). Claim: proved. Unit: example. Relation: add-remove. Trust: participant adds the noise; the server is not trusted. Sampling: poisson. Not covered: hyper-parameter tuning; early stopping and validation data; counts, losses and timings sent beside the releases.
}
