package ledger_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/ledger"
)

// A dataset's owner allows its examples to lose epsilon 2 at delta 1e-5, over all runs
// and federations. Every round is reserved before noise is drawn. The round that would
// take the total above the ceiling is refused, and so is every later one like it.
func Example() {
	dir, err := os.MkdirTemp("", "ledger")
	check(err)
	defer os.RemoveAll(dir)

	terms := account.Terms{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved}
	l, err := ledger.Open(dir, ledger.Policy{Ceilings: []ledger.Ceiling{{
		Unit: terms.Unit, Relation: terms.Relation, Claim: terms.Claim, Epsilon: 2, Delta: 1e-5,
	}}})
	check(err)
	defer l.Close()
	server := ledger.Membership{Federation: "schools", Participant: "school-7", Key: ledger.Key{1}}
	check(l.Reconcile(server, nil)) // the server holds no receipt of ours yet

	round, err := account.Training{
		Terms: terms, Trust: event.TrustLocal, Sampling: event.Poisson, Rate: 0.1, Noise: 2, Steps: 10,
	}.Release()
	check(err)
	for i := 0; ; i++ {
		err := l.Reserve(ledger.Charge{
			Slot:    ledger.Slot{Federation: "schools", Run: "exam scores", Round: i},
			Release: round, Enforcement: ledger.Enforced, Plan: ledger.Hash{1},
		})
		if errors.Is(err, ledger.ErrRefused) {
			fmt.Println("refused: round", i)
			break
		}
		check(err) // nil: the charge is on disk, noise may be drawn
	}
	summary, err := l.Summary()
	check(err)
	b := summary.Budgets[0]
	fmt.Printf("%d releases, epsilon %.2f of %v at delta %v\n", b.Releases, float64(b.Epsilon), b.Ceiling, b.Delta)
	// Output:
	// refused: round 5
	// 5 releases, epsilon 1.85 of 2 at delta 1e-05
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
