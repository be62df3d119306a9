package fl

import (
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/mech"
)

// mostAnywhere is LargestValue where no lattice sets a smaller one: far above every
// useful parameter, and so far below the largest float64 that squares and sums of
// such values stay finite.
const mostAnywhere = 1e12

// LargestValue is the largest magnitude that a value of a release or a broadcast may
// have by the run file. It follows from public settings alone. With exact noise on
// updates it is what fits the coarsest lattice that any model could have there: that
// of one parameter with the whole of the first radius. A model's own lattices are
// finer, and hold less.
func LargestValue(run config.Run) float64 {
	p := run.Privacy
	if run.Data.OfSilos() || p.Noise == "simulated" || !(p.NoiseMultiplier > 0) {
		return mostAnywhere
	}
	radius := p.Radius // falls from round to round
	if run.Algorithm.Mode != "sound" {
		radius = 64 * p.RadiusFloor
	}
	l, err := mech.LatticeFor(p.NoiseMultiplier * radius * math.Sqrt2)
	if err != nil { // no release can be made, which others say
		return mostAnywhere
	}
	return min(mostAnywhere, mech.MaxCoordinate*l.Step)
}
