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
// finer, and hold less: ReleaseBounds.
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

// ReleaseBounds hold for every release of the run: what fits the finest of a layer's
// lattices, that of the broadcast after the last round. A value that fits only the
// lattice of an earlier round would be a hypothesis that no later one can send.
func (g *Group) ReleaseBounds() []Bound {
	out := make([]Bound, len(g.layers))
	for i := range g.layers {
		part := &g.layers[i]
		out[i] = Bound{From: part.From, To: part.To, Most: mostAnywhere}
		if !g.exact() {
			continue
		}
		l, err := g.lattice(part, g.radius(g.cfg.Rounds))
		if err != nil {
			out[i].Most = 0 // nothing can be sent in the end
			continue
		}
		out[i].Most = min(mostAnywhere, mech.MaxCoordinate*l.Step)
	}
	return out
}

// ReleaseBounds hold for every release of the run. The numbers that a silo declares
// are divided by and squared, so that they may be no tiny fractions either.
func (s *Silo) ReleaseBounds() []Bound {
	if s.ReleaseLength() == 0 {
		return nil
	}
	return []Bound{
		{From: 0, To: s.n, Most: mostAnywhere},
		{From: s.n, To: s.n + tailLength, Least: 1 / (mostAnywhere * mostAnywhere * mostAnywhere * mostAnywhere), Most: mostAnywhere * mostAnywhere},
	}
}
