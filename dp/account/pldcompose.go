package account

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
)

// composition is sources composed with themselves and each other in one direction.
type composition struct {
	sources []lossSource
	times   []float64
	// least is the smallest grid step to use, 0 for as small as accuracy asks.
	least   float64
	maxGrid int
}

// bounds are what passes prove about epsilon at a delta, the step of the last one and
// where it looked.
type bounds struct {
	low, high, step float64
	window          window
}

// tightened takes in what another pass found.
func (b bounds) tightened(found passed, step float64) bounds {
	return bounds{math.Max(b.low, found.low), math.Min(b.high, found.high), step, found.window}
}

// accuracy is the share of epsilon that the grid may add.
const accuracy = 5e-5

// minGrid bounds the work of a pass from below; passes and refinements bound their
// number.
const (
	minGrid     = 1 << 12
	passes      = 6
	refinements = 4
)

// epsilon bounds the least epsilon at delta from both sides. Every pass chooses a
// step, a tilt and a window; later ones aim better with what the earlier found.
func (c composition) epsilon(delta float64) bounds {
	tail := c.tail(delta)
	sketches := make(tilter, len(c.sources))
	for i, s := range c.sources {
		sketches[i] = newWeighted(s.sketch(tail), c.times[i])
	}
	guess, lambda := sketches.chernoff(-math.Log(delta))
	_, w := sketches.aim(lambda, delta)
	best, below := bounds{0, math.Inf(1), math.Inf(1), w}, false
	for range passes {
		step := c.step(guess, lambda, w, tail)
		if !(step > 0) || math.IsInf(step, 1) || step > 0.7*best.step && !below {
			break
		}
		found := c.pass(delta, tail, step, guess)
		lambda, w, below = found.lambda, found.window, found.below
		best = best.tightened(found, step)
		if !(best.high > 0) || math.IsInf(best.high, 1) {
			break
		}
		guess = best.high
		if below {
			guess /= 3
		}
	}
	return best
}

// refine makes the grid finer until the upper bound exceeds the lower one, or one that
// is known already, by a share of at most excess, or the work is too much. What a grid
// adds to the upper bound falls with the square of its step and is small already; what
// is taken from the lower one falls with the step.
func (c composition) refine(best bounds, delta, known, excess float64) bounds {
	if c.total()*lowMass > delta {
		return best // the mass that sources move up spoils the lower bound, whatever the step
	}
	c.maxGrid *= 4 // a last try may cost more than the first ones
	for range refinements {
		low := math.Max(best.low, known)
		if !(best.high > 0) || math.IsInf(best.high, 1) || best.high <= low*(1+excess) {
			break
		}
		tail := c.tail(delta)
		step := best.step * math.Max(1.0/16, 0.7*excess*best.high/(best.high-low))
		step = math.Max(step, 1.01*c.leastStep(best.window, tail))
		if step > 0.9*best.step {
			break
		}
		best = best.tightened(c.pass(delta, tail, step, best.high), step)
	}
	return best
}

// tail is the mass that a source may leave out.
func (c composition) tail(delta float64) float64 { return math.Max(delta*1e-9/c.total(), 1e-290) }

// passed is what a pass found, and where it looked; below says that epsilon lies
// under the window.
type passed struct {
	low, high, lambda float64
	window            window
	below             bool
}

// spread puts all sources on one grid and picks tilt and window for it: a coarse
// grid has other moments than the losses it stands for. The step grows until the
// window fits, or gives up and returns none.
func (c composition) spread(delta, tail, step, guess float64) (grids []gridLoss, lambda float64, w window) {
	for range 8 {
		grids = grids[:0]
		t := make(tilter, len(c.sources))
		for i, s := range c.sources {
			g := s.spread(step, tail)
			g.fill()
			grids = append(grids, g)
			t[i] = newWeighted(g.atoms(), c.times[i])
		}
		var highest float64
		highest, lambda = t.chernoff(-math.Log(delta))
		if guess < highest {
			lambda = math.Min(lambda, t.saddle(guess))
		}
		// A steeper tilt, as bounded losses invite, would tell one grid point from
		// the next and leave nothing of the others.
		lambda = math.Min(lambda, 0.1/step)
		lambda, w = t.aim(lambda, delta)
		if (w.top-w.bottom)/step < float64(c.maxGrid-2) {
			return grids, lambda, w
		}
		step = 1.1 * (w.top - w.bottom) / float64(c.maxGrid-2)
	}
	return nil, 0, w
}

func (c composition) total() float64 {
	total := 0.0
	for _, t := range c.times {
		total += t
	}
	return math.Max(1, total)
}

// step is small enough that the grid adds a share accuracy to epsilon (each step
// raises the cumulant by about step^2*lambda*(lambda+1)/12), and large enough for
// the window to fit.
func (c composition) step(guess, lambda float64, w window, tail float64) float64 {
	wanted := math.Min(math.Sqrt(12*accuracy*guess/(c.total()*(lambda+1))), guess/1500)
	wanted = math.Min(wanted, math.Max(0.05/lambda, guess/20000))
	return math.Max(wanted, c.leastStep(w, tail))
}

// leastStep is the least at which the window fits on the grid, and every source on one of
// twice its size: at small deltas a source reaches much further than the window.
func (c composition) leastStep(w window, tail float64) float64 {
	least := math.Max(c.least, (w.top-w.bottom)/float64(c.maxGrid-2))
	for _, s := range c.sources {
		least = math.Max(least, s.span(tail)/float64(2*c.maxGrid))
	}
	return least
}

// pass composes once. The losses are tilted by e^(lambda*loss), so that the part
// of the distribution that decides about delta is where the FFT is accurate;
// indices are taken modulo the grid's length, and what that moves is either
// counted too high or bounded and added (docs/proofs/pld.md).
func (c composition) pass(delta, tail, step, guess float64) passed {
	grids, lambda, w := c.spread(delta, tail, step, guess)
	if grids == nil {
		return passed{high: math.Inf(1), window: w}
	}
	step = grids[0].step
	n := minGrid
	for float64(n)*step < w.top-w.bottom+2*step {
		n *= 2
	}
	fft := fourier.NewFFT(n)
	product := newProduct(n)
	sequence, spectrum := make([]float64, n), make([]complex128, n/2+1)
	eta := delta / 400
	var logMoment, logTop, logAbove, logBelow, infinite, lifted float64
	for i, g := range grids {
		k := g.logMoment(lambda)
		logMoment += c.times[i] * k
		logTop += c.times[i] * g.logMoment(w.topTilt)
		logAbove += c.times[i] * g.logMoment(lambda+w.topShift)
		logBelow += c.times[i] * g.logMoment(lambda-w.bottomShift)
		infinite += c.times[i] * g.infinite
		lifted += c.times[i] * g.lift(eta/c.total()) * step
		g.fold(sequence, lambda, k)
		product.multiply(fft.Coefficients(spectrum, sequence), c.times[i])
	}
	fft.Sequence(sequence, product.value)
	norm := 0.0
	for i := range sequence {
		sequence[i] /= float64(n)
		norm += sequence[i] * sequence[i]
	}
	roundoff := product.roundoff() + fftError(n)*math.Sqrt(norm)
	bottom := int(math.Floor(w.bottom / step))
	top := float64(bottom+n) * step
	r := reading{
		step: step, lambda: lambda, bottom: bottom, tilted: sequence,
		logScale: logMoment - math.Log(delta), roundoff: roundoff,
		folded: math.Exp(logBelow-logMoment+w.bottomShift*float64(bottom)*step) +
			math.Exp(logAbove-logMoment-w.topShift*top),
	}
	extra := (infinite + math.Exp(logTop-w.topTilt*top)) / delta
	high := r.upper(1, extra)
	// The grid's losses exceed the true ones by at most a mean of step^2/8 each, what
	// rounding errors lifted, and a deviation that Hoeffding bounds, but for two chances
	// of eta; and but for the mass below the sources' reach, which was moved up.
	total := c.total()
	shift := total*step*step/8*(step/-math.Expm1(-step)) + lifted + step*math.Sqrt(-total/2*math.Log(eta))
	low := r.lower(1+(2*eta+total*lowMass)/delta+extra) - shift
	return passed{math.Max(0, low), high, lambda, w, bottom > 0 && high == float64(bottom)*step}
}

// fill makes up for mass that rounding lost, in proportion: no loss may go missing.
func (g gridLoss) fill() {
	total := g.infinite
	for _, m := range g.mass {
		total += m
	}
	if total < 1 {
		for i := range g.mass {
			g.mass[i] /= total
		}
	}
}

// logMoment is log E[e^(lambda*loss)] over the finite losses.
func (g gridLoss) logMoment(lambda float64) float64 {
	var total logSum
	for i, m := range g.mass {
		if m > 0 {
			total.add(math.Log(m) + lambda*float64(g.first+i)*g.step)
		}
	}
	return total.log()
}

// atoms are the grid's points, with neighbours merged to within half a percent of
// their loss.
func (g gridLoss) atoms() []lossAtom {
	var atoms []lossAtom
	for i := 0; i < len(g.mass); {
		k := g.first + i
		end := min(len(g.mass), i+max(1, max(k, -k)/200))
		mass, loss := 0.0, 0.0
		for ; i < end; i++ {
			mass += g.mass[i]
			loss += g.mass[i] * float64(g.first+i) * g.step
		}
		if mass > 0 {
			atoms = append(atoms, lossAtom{loss / mass, mass})
		}
	}
	return atoms
}

// fold writes the tilted distribution into sequence, index modulo its length.
func (g gridLoss) fold(sequence []float64, lambda, logMoment float64) {
	clear(sequence)
	n := len(sequence)
	at := ((g.first % n) + n) % n
	for i, m := range g.mass {
		if m > 0 {
			sequence[at] += m * math.Exp(lambda*float64(g.first+i)*g.step-logMoment)
		}
		if at++; at == n {
			at = 0
		}
	}
}

// reading reads delta off the composed, tilted distribution.
type reading struct {
	step, lambda float64
	bottom       int
	tilted       []float64
	logScale     float64 // log of moment/delta: delta is counted in units of the target
	roundoff     float64 // Euclidean norm of the error in tilted
	folded       float64 // tilted mass from outside the window, which lands in it
}

// upper is an epsilon at which delta, in units of the target, is at most goal:
// extra is mass at infinity, and errors count as mass.
func (r reading) upper(goal, extra float64) float64 {
	return r.descend(goal, extra, r.roundoff*r.errorWeight(), math.Max(0, float64(r.bottom)*r.step))
}

// lower is an epsilon at which the grid's delta is at least goal: errors count
// against it. It is 0 if there is none in the window.
func (r reading) lower(goal float64) float64 {
	return r.descend(goal, 0, -r.roundoff*r.errorWeight()-r.folded, 0)
}

// errorWeight is, by Cauchy and Schwarz, what a roundoff of norm 1 can add to
// delta: the norm of e^(-lambda*(loss-eps)) over the losses above eps.
func (r reading) errorWeight() float64 {
	weight := math.Sqrt(float64(len(r.tilted)))
	if x := 2 * r.lambda * r.step; x > 0 {
		weight = math.Min(weight, 1/math.Sqrt(math.Expm1(x)))
	}
	return weight
}

// descend goes down from the window's top to where delta passes goal. With
// B = sum of p_j e^(eps-eps_j) over the losses above eps, one step down adds
// (1-e^-step)(B+p) to delta: nothing cancels.
func (r reading) descend(goal, extra, tiltedError, otherwise float64) float64 {
	n := len(r.tilted)
	shrink := math.Exp(-r.step)
	delta, b := 0.0, 0.0
	before := math.NaN() // delta one grid point higher, errors included
	for k := r.bottom + n - 1; k >= r.bottom; k-- {
		scale := math.Exp(r.logScale - r.lambda*float64(k)*r.step)
		here := delta + extra + scale*tiltedError
		if here > goal {
			if math.IsNaN(before) {
				return math.Inf(1)
			}
			return math.Max(0, interpolate(float64(k)*r.step, r.step, here, before, goal))
		}
		if k < 0 {
			return 0
		}
		before = here
		p := math.Max(0, r.tilted[((k%n)+n)%n]) * scale
		delta += (1 - shrink) * (b + p)
		b = shrink * (b + p)
	}
	return otherwise
}

// interpolate solves for goal between the grid point eps (value high) and the next
// (value low); delta is linear in e^eps between grid points.
func interpolate(eps, step, high, low, goal float64) float64 {
	share := (high - goal) / (high - low)
	return eps + math.Log1p(share*math.Expm1(step))
}
