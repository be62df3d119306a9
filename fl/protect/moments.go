package protect

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
)

// moments scale a participant's features by their mean and deviation over its training
// rows, noised and paid for out of its target: docs/proofs/moments.md. The constants
// never leave the participant, but its updates follow from them.
type moments struct {
	share  float64   // epsilon of the moments by themselves, of the participant's
	centre []float64 // of every feature's public range
	scale  []float64 // half its width
	noise  rng.Family
}

// leastVariance is that of a feature whose range is -1…1: a deviation of one
// hundredth of the range's half.
const leastVariance = 1e-4

// newMoments is nil unless the run file wants moments that are paid for.
func newMoments(run config.Run) (*moments, error) {
	if run.Data.Standardise != string(data.ByPaid) {
		return nil, nil
	}
	var c config.Checker
	checkMoments(&c, run)
	if faults := c.Faults(); faults != nil {
		return nil, faults
	}
	m := &moments{share: run.Privacy.MomentsShare, noise: rng.NewFamily(run.Seed, "moments")}
	m.centre, m.scale = data.PublicRange(run.Data)
	for _, s := range m.scale {
		if !(s > 0) {
			return nil, fmt.Errorf("data.scale: half the width of a range is %v; allowed: positive", s)
		}
	}
	return m, nil
}

// fit holds the rows against the ranges.
func (m *moments) fit(c *data.Client) error {
	d := len(m.scale)
	if c.Images != nil || d == 0 || c.Features != d || len(c.X) != d*c.Len() || len(m.centre) != d {
		return fmt.Errorf("data.standardise is paid, with public ranges of %d features, but the silo has %d values in %d rows of %d features", d, len(c.X), c.Len(), c.Features)
	}
	return nil
}

// A row is summed as u_j and u_j^2 - 1 for every feature, u_j in -1…1: the two
// together are never longer than 1, since u^2 + (1 - u^2)^2 = 1 - u^2*(1 - u^2). Where
// the number of rows is private, every row counts itself as well.

// counter is what a row adds to the count: enough to make the count the surest of
// the sums, and little beside the d of the features.
func (m *moments) counter(relation event.Relation) float64 {
	if relation == event.ReplaceOne {
		return 0 // the count is public
	}
	return math.Sqrt(float64(len(m.scale))) / 2
}

// bound is the largest norm of a row's part of the sums.
func (m *moments) bound(relation event.Relation) float64 {
	c := m.counter(relation)
	return math.Sqrt(float64(len(m.scale)) + c*c)
}

// length is how many sums there are.
func (m *moments) length(relation event.Relation) int {
	if m.counter(relation) == 0 {
		return 2 * len(m.scale)
	}
	return 2*len(m.scale) + 1
}

// part is what one row adds.
func (m *moments) part(x []float64, relation event.Relation) []float64 {
	d := len(m.scale)
	v := make([]float64, m.length(relation))
	for j := range d {
		u := max(-1, min(1, (x[j]-m.centre[j])/m.scale[j]))
		if math.IsNaN(u) {
			u = 0 // by a rule of this row alone
		}
		v[j], v[d+j] = u, u*u-1
	}
	if len(v) > 2*d {
		v[2*d] = m.counter(relation)
	}
	return v
}

// settle finds the least noise that keeps the moments' share by themselves, in all runs
// that share the target.
func (m *moments) settle(p *fl.Plan) error {
	epsilon, delta := p.Target.PerRecord()
	alone := account.Training{Terms: p.Terms, Trust: p.Trust, Sampling: event.FullBatch, Steps: 1, Runs: int64(p.Target.Runs)}
	alone, _, err := alone.WithNoiseFor(account.MethodRDP, m.share*epsilon, delta)
	if err != nil {
		return fmt.Errorf("noise of the moments for epsilon %v at delta %v: %w", m.share*epsilon, delta, err)
	}
	p.Moments = alone.Noise
	return nil
}

// draw makes constants of the noised sums. They must be paid for.
func (m *moments) draw(e *example, p *fl.Participant, paid *mech.Paid) (centre, scale []float64, err error) {
	sums, err := m.sums(p, paid, e.privacy.Noise)
	if err != nil {
		return nil, nil, fmt.Errorf("moments: %w", err)
	}
	relation := p.Plan.Terms.Relation
	count := float64(p.Data.Len()) // public under replace-one
	if c := m.counter(relation); c > 0 {
		count = max(1, sums[2*len(m.scale)]/c)
	}
	centre, scale = m.constants(sums, count, p.Plan.Moments*m.bound(relation)/count)
	return centre, scale, nil
}

// sums adds up the rows' parts and noise of the kind that the run file names.
func (m *moments) sums(p *fl.Participant, paid *mech.Paid, kind string) ([]float64, error) {
	plan := &p.Plan
	relation := plan.Terms.Relation
	bound, out := m.bound(relation), make([]float64, m.length(relation))
	rows := p.Data.Len()
	if p.Blank {
		rows = 0
	}
	if plan.Moments == 0 { // without a target nothing is protected
		for i := range rows {
			for j, v := range m.part(p.Data.X[i*p.Data.Features:], relation) {
				out[j] += v
			}
		}
		return out, nil
	}
	return out, noisedSum(out, kind, plan.Moments, bound, paid, m.noise.Stream(0, p.ID), func(add func(mech.Clipped) error) error {
		for i := range rows {
			c, err := mech.Clip(m.part(p.Data.X[i*p.Data.Features:], relation), bound)
			if err == nil {
				err = add(c)
			}
			if err != nil {
				return fmt.Errorf("row %d: %w", i, err)
			}
		}
		return nil
	})
}

// noisedSum adds up the clipped terms that each gives it, and noise of the kind that the
// run file names.
func noisedSum(dst []float64, kind string, multiplier, bound float64, paid *mech.Paid, src *rng.Stream, each func(add func(mech.Clipped) error) error) error {
	g := mech.Gaussian{Multiplier: multiplier}
	if kind == "simulated" {
		sum, err := mech.NewSimulatedSum(len(dst), bound)
		if err != nil {
			return err
		}
		if err := each(sum.Add); err != nil {
			return err
		}
		return paid.Simulate(g, dst, sum, src)
	}
	lattice, err := g.Lattice(bound)
	if err != nil {
		return err
	}
	sum, err := mech.NewClippedSum(len(dst), bound, lattice)
	if err != nil {
		return err
	}
	if err := each(sum.Add); err != nil {
		return err
	}
	return exactSum(dst, kind, g, sum, paid, src)
}

// exactSum sets dst to a sum on a lattice with exact noise: the system's, or a seed's.
func exactSum(dst []float64, kind string, g mech.Gaussian, sum *mech.ClippedSum, paid *mech.Paid, src *rng.Stream) error {
	entropy := mech.SystemEntropy()
	if kind == fl.NoiseSeeded {
		entropy.Reset(src)
	}
	noised := make([]int64, len(dst))
	if err := paid.Release(g, noised, sum, entropy); err != nil {
		return err
	}
	sum.Lattice().Float(dst, noised)
	return nil
}

// constants make the best of noised sums, with nothing but public numbers beside
// them. Noise is the deviation of what it adds to a mean. A mean is drawn to the
// middle of its range as far as its noise is wide (the posterior mean under a prior
// of variance 1/3, that of the uniform distribution on the range). A variance is not
// believed below twice its noise, nor below what a single row at the other end of
// the range would make: rows that are held out may have it. With much noise this ends
// at the public range.
func (m *moments) constants(sums []float64, count, noise float64) (centre, scale []float64) {
	d := len(m.scale)
	centre, scale = make([]float64, d), make([]float64, d)
	least := min(1, max(leastVariance, 4/count, 2*noise))
	for j := range d {
		mean, square := sums[j]/count, 1+sums[d+j]/count
		variance := square - mean*mean + noise*noise // the noise's own square is in mean*mean
		mean = max(-1, min(1, mean/(1+3*noise*noise)))
		variance = max(least, min(1, variance))
		centre[j] = m.centre[j] + m.scale[j]*mean
		scale[j] = m.scale[j] * math.Sqrt(variance)
	}
	return centre, scale
}

// checkScaling holds what a participant keeps against what it should.
func (e *example) checkScaling(p *fl.Participant) error {
	if e.moments != nil && p.Scaling != nil && len(p.Scaling) != 2*len(e.moments.scale) {
		return fmt.Errorf("it scales its features by %d constants, not %d: they belong to another run", len(p.Scaling), 2*len(e.moments.scale))
	}
	return nil
}
