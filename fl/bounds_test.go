package fl

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

func TestLargestValueFollowsFromPublicSettings(t *testing.T) {
	exact := config.Default("group-private", "sound")
	exact.Privacy.Noise = "exact"
	paper := config.Default("group-private", "paper")
	paper.Privacy.Noise = "exact"
	wide := exact
	wide.Privacy.Radius = 1e9
	broken := exact
	broken.Privacy.Radius = math.Inf(1)
	for name, c := range map[string]struct {
		run  config.Run
		want float64
	}{
		// 5*0.3*sqrt(2) = 2.12: a step of 2^(1-20), times 2^53.
		"exact, sound": {exact, math.Ldexp(1, 34)},
		// 5*64e-6*sqrt(2) = 4.5e-4, at least 2^-12: a step of 2^-32, times 2^53.
		"exact, paper":  {paper, math.Ldexp(1, 21)},
		"a wide radius": {wide, 1e12},
		"no lattice":    {broken, 1e12},
		"simulated":     {config.Default("group-private", "sound"), 1e12},
		"no noise":      {config.Default("fedavg", "sound"), 1e12},
		"silos":         {config.DefaultSilo("school", "fedavg", "sound"), 1e12},
	} {
		if got := LargestValue(c.run); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
