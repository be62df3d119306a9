package sim_test

import (
	"fmt"

	_ "github.com/coterie-fl/coterie/all" // every data set, method and protection
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/sim"
)

// Train a federation in memory: 100 clients of two groups, a model for each group, and
// updates that are noised at a public radius. A run file is YAML text; what it does not
// say has the papers' values. The second argument of New is the folder of real data,
// which drawn data do not need.
func Example() {
	run, err := config.Resolve([]byte(`
data: {kind: synthetic, users: 100, validation_users: 20}
algorithm: {kind: group-private, mode: sound, hypotheses: 2, rounds: 60, clients_per_round: 20}
privacy: {protects: update, noise_multiplier: 5, radius: 0.5, radius_decay: 0.95}
`), []string{"seed=7"}, sim.Checks()...)
	if err != nil {
		panic(err)
	}
	s, err := sim.New(run, nil)
	if err != nil {
		panic(err)
	}
	defer s.Close()
	for more := true; more; {
		if more, err = s.Step(); err != nil {
			panic(err)
		}
	}
	result, err := s.Result()
	if err != nil {
		panic(err)
	}
	p := result.Privacy
	fmt.Printf("%d rounds, loss %.2f\n", result.Rounds, float64(result.Metrics.Loss))
	fmt.Printf("%s: a client has lost at most %.1f, claim %s\n", p.Protects, float64(p.MaxEpsilon), p.Claim)
	// Output:
	// 60 rounds, loss 0.60
	// update: a client has lost at most 8.8, claim metric
}
