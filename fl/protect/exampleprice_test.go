package protect

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
)

// TestPriceIsWhatItsRoundsCost: what a silo is told before the first round is what the
// rounds will cost one by one, choices of a cluster included, and the target.
func TestPriceIsWhatItsRoundsCost(t *testing.T) {
	for name, run := range fltest.Variants() {
		if run.Privacy.Epsilon == 0 || run.Privacy.Protects != "example" {
			continue // no silo pays for its examples
		}
		t.Run(name, func(t *testing.T) {
			silo := fltest.New(t, run, 4)
			train, _ := fltest.Silos(4, 40, 3, 0.5)
			p := fl.Participant{Name: "one", Data: &train[0]}
			if err := silo.Prepare(&p); err != nil {
				t.Fatal(err)
			}
			e := silo.Protection().(*example)
			used := func(releases ...event.Release) float64 {
				a, err := account.NewRDP(p.Plan.Terms)
				for _, r := range releases {
					if err == nil {
						err = a.Compose(r)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				g, err := a.Guarantee(run.Privacy.Delta)
				if err != nil {
					t.Fatal(err)
				}
				return float64(g.Epsilon)
			}
			price := func(from int) float64 {
				r, rounds, err := silo.PriceAhead(&p, from)
				if err != nil || rounds != run.Algorithm.Rounds-from {
					t.Fatal(rounds, err)
				}
				return used(r)
			}
			for _, from := range []int{0, 1} {
				var each []event.Release
				for round := from; round < run.Algorithm.Rounds; round++ {
					r, err := p.Plan.Release(e.choosing(round), e.owesMoments(0, &p) && round == from)
					if err != nil {
						t.Fatal(err)
					}
					each = append(each, r)
				}
				whole, rounds := price(from), used(each...)
				if math.Abs(whole-rounds) > 1e-9*rounds {
					t.Errorf("from round %d on the price is epsilon %v, the rounds cost %v", from+1, whole, rounds)
				}
				if whole > run.Privacy.Epsilon*(1+1e-6) {
					t.Errorf("the price is epsilon %v, the target %v", whole, run.Privacy.Epsilon)
				}
			}
			if price(1) >= price(0) {
				t.Error("fewer rounds cost as much")
			}
			if _, _, err := silo.PriceAhead(&p, run.Algorithm.Rounds); err == nil {
				t.Error("rounds that there are none of have a price")
			}
		})
	}
}

// TestRunsShareMoments: of a target that several runs share, all their moments take the
// share that one run's take of a whole one, and everything together keeps it.
func TestRunsShareMoments(t *testing.T) {
	const runs = 9
	train, _ := fltest.Silos(1, 40, fltest.Features, 0.2)
	run := paidRun("mr-mtl", "add-remove", 3)
	_, _, one := preparedSilo(t, run, &train[0])
	run.Privacy.Runs = runs
	_, e, p := preparedSilo(t, run, &train[0])
	// Gaussian noise: so many releases cost as one with a noise divided by their root.
	if math.Abs(p.Plan.Moments/one.Plan.Moments-math.Sqrt(runs)) > 1e-6 {
		t.Errorf("the moments' noise is %v in one run, %v in one of %d", one.Plan.Moments, p.Plan.Moments, runs)
	}
	r, _, err := e.PriceAhead(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.What = event.Repeated{Times: runs, Of: r.What}
	all, err := account.Spend(r, account.MethodRDP, run.Privacy.Delta)
	if err != nil || all.Epsilon > run.Privacy.Epsilon || all.Epsilon < 0.999*run.Privacy.Epsilon {
		t.Errorf("%d runs cost %v of %v (%v)", runs, all.Epsilon, run.Privacy.Epsilon, err)
	}
}
