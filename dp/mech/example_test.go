package mech_test

import (
	"errors"
	"fmt"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
)

// Release the sum of three vectors by the Gaussian mechanism: every vector is clipped,
// so that the sum says itself how much one of them can change it; the release is paid
// for; and the noise is drawn exactly, on integers, from the system's entropy.
func Example() {
	noise := mech.Gaussian{Multiplier: 2} // standard deviation over the clip
	lattice, err := noise.Lattice(1)
	check(err)
	sum, err := mech.NewClippedSum(2, 1, lattice)
	check(err)
	for _, v := range [][]float64{{3, 4}, {0.1, 0}, {0, -0.2}} {
		clipped, err := mech.Clip(v, 1)
		check(err)
		check(sum.Add(clipped))
	}
	paid, err := mech.NewPaid(event.Release{
		Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Trust: event.TrustLocal,
		What: noise.Event(),
	})
	check(err)
	steps, out := make([]int64, 2), make([]float64, 2)
	check(paid.Release(noise, steps, sum, mech.SystemEntropy()))
	lattice.Float(out, steps)
	fmt.Println("released values:", len(out))
	err = paid.Release(noise, steps, sum, mech.SystemEntropy())
	fmt.Println("a second time, unpaid:", errors.Is(err, mech.ErrUnpaid))
	// Output:
	// released values: 2
	// a second time, unpaid: true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
