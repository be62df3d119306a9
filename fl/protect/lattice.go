package protect

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
)

// exactScratch is what exact noise needs of a worker.
type exactScratch struct {
	entropy *mech.Entropy
	base    []int64
	sum     []int64
}

// lattice is a layer's public grid in a round. It follows from public settings alone:
// the round's radius, or in paper mode the smallest radius that an update can have.
func (u *update) lattice(part *layer, radius float64) (mech.Lattice, error) {
	n := float64(part.Len())
	radius *= part.share
	if !u.sound() {
		// Noise may be far wider than at the floor: fewer steps per unit keep it in range.
		// At the floor a step must still be small beside the noise, whatever n is.
		radius = min(64, 0x1p14/math.Sqrt(n+1)) * u.privacy.RadiusFloor
	}
	l, err := mech.LatticeFor(u.privacy.NoiseMultiplier * radius * math.Sqrt(n+1) / n)
	if err != nil {
		return l, fmt.Errorf("exact noise: %w", err)
	}
	return l, nil
}

// slack is what the lattice adds to a layer's loss, at every distance up to the
// largest that a statement names: docs/proofs/laplace-mixture.md, theorem 2.
func (u *update) slack(part *layer, e event.MetricLaplace, b *fl.Broadcast) (float64, error) {
	l, err := u.lattice(part, b.Radius)
	if err != nil {
		return 0, err
	}
	distance := 2*e.Radius + b.Spread
	loss, err := mech.LatticeLaplaceLoss(e.Dimension, e.Epsilon(), l, distance)
	return loss - e.Epsilon()*distance, err
}

// ontoLattice rounds hypotheses before they are sent: otherwise what is left
// below the lattice would tell which of them a client started from.
func (u *update) ontoLattice(hypotheses []float64, radius float64) error {
	for i := range u.layers {
		part := &u.layers[i]
		l, err := u.lattice(part, radius)
		if err != nil {
			return err
		}
		for from := 0; from < len(hypotheses); from += u.n {
			for j, v := range hypotheses[from+part.From : from+part.To] {
				if !(math.Abs(v) <= mech.MaxCoordinate*l.Step) {
					return fmt.Errorf("exact noise: a hypothesis has the coordinate %v, too large for the lattice of step %v", v, l.Step)
				}
				hypotheses[from+part.From+j] = math.Trunc(v/l.Step) * l.Step
			}
		}
	}
	return nil
}

// openExact prepares a release on the lattice: system entropy, or a stream keyed by
// round and client, which the layers read one after another.
func (g *updateGuard) openExact() {
	x := &g.exact
	if x.entropy == nil {
		x.entropy = mech.SystemEntropy()
		x.base, x.sum = make([]int64, g.n), make([]int64, g.n)
	}
	if g.privacy.Noise == fl.NoiseSeeded {
		x.entropy.Reset(&g.noise)
	}
}

// releaseExact is Simulate's twin on the lattice.
func (g *updateGuard) releaseExact(b *fl.Broadcast, part *layer, out, base []float64, clipped mech.Clipped) (event.MetricLaplace, error) {
	l, err := g.lattice(part, b.Radius)
	if err != nil {
		return event.MetricLaplace{}, err
	}
	x := &g.exact
	from, sum := x.base[:len(base)], x.sum[:len(base)]
	if err := l.Truncate(from, base); err != nil {
		return event.MetricLaplace{}, err
	}
	drawn, err := g.laplace.OnLattice(sum, from, clipped, l, x.entropy)
	if err == nil {
		l.Float(out, sum)
	}
	return drawn, err
}
