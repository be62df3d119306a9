package fl

import (
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/mech"
)

// MostAnywhere is LargestValue where no lattice sets a smaller one: far above every
// useful parameter, and so far below the largest float64 that squares and sums of
// such values stay finite.
const MostAnywhere = 1e12

// LargestValue is the largest magnitude that a value of a release or a broadcast may
// have by the run file. It follows from public settings alone. With exact noise on
// updates it is what fits the coarsest lattice that any model could have there: that
// of one parameter with the whole of the first radius. A model's own lattices are
// finer, and hold less: ReleaseBounds.
func LargestValue(run config.Run) float64 {
	p := run.Privacy
	if p.Protects != "update" || p.Noise == "simulated" || !(p.NoiseMultiplier > 0) {
		return MostAnywhere
	}
	radius := p.Radius // falls from round to round
	if run.Algorithm.Mode != "sound" {
		radius = 64 * p.RadiusFloor
	}
	l, err := mech.LatticeFor(p.NoiseMultiplier * radius * math.Sqrt2)
	if err != nil { // no release can be made, which others say
		return MostAnywhere
	}
	return min(MostAnywhere, mech.MaxCoordinate*l.Step)
}

// Bound is what the values from From up to To of a release may be: 0, or of a
// magnitude from Least to Most.
type Bound struct {
	From, To    int
	Least, Most float64
}

// Clamp brings the values of a release within bounds. It is post-processing: it reads
// nothing but the release, and keeps a server from refusing it.
func Clamp(release []float64, bounds []Bound) {
	for _, b := range bounds {
		for i, v := range release[b.From:b.To] {
			release[b.From+i] = max(-b.Most, min(b.Most, v))
		}
	}
}
