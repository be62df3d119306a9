package method

import (
	"math"

	"github.com/coterie-fl/coterie/fl"
)

// estimator is the server's scratch for an automatic lambda.
type estimator struct {
	totals       []float64 // weight of every cluster's releases
	means        []float64 // by cluster: mean gradient, then mean distance
	moves        []float64 // by release: gradient, then distance
	known        []fl.Declaration
	guess        []float64 // what is to be told
	participants []participantSums
}

// kept are the server's memories of a participant.
func (m *meanRegularised) kept(st *fl.State, participant int) (last, gradients, distances, numbers []float64) {
	at := st.Memory[m.headLength()+participant*m.keptEach():][:m.keptEach()]
	return at[:m.n], at[m.n : 2*m.n], at[2*m.n : 3*m.n], at[3*m.n:]
}

// sums are, over participants and rounds, gradient times distance and distance squared.
func (m *meanRegularised) sums(st *fl.State) (products, squares []float64) {
	at := st.Memory[m.toldLength():m.headLength()]
	return at[:m.n], at[m.n:]
}

// learn adds a round's releases to what is known of the participants, and estimates anew.
// The models are still those that the round began with.
func (m *meanRegularised) learn(st *fl.State, r fl.Releases) {
	if st.Round > m.federated { // already the next one
		m.gather(st, r)
		m.estimate(st)
	}
	length := m.means.Length()
	for i, participant := range r.Clients {
		if participant < m.Participants {
			last, _, _, _ := m.kept(st, participant)
			copy(last, r.Vectors[i*length:])
		}
	}
}

// gather sums every participant's mean gradient and distance, both less their cluster's
// mean: the cluster moves as a whole.
func (m *meanRegularised) gather(st *fl.State, r fl.Releases) {
	e, n, length := &m.spread, m.n, m.means.Length()
	e.totals = append(e.totals[:0], make([]float64, m.means.Models)...)
	e.means = append(e.means[:0], make([]float64, 2*n*m.means.Models)...)
	e.moves = append(e.moves[:0], make([]float64, 2*n*len(r.Clients))...)
	e.known = append(e.known[:0], make([]fl.Declaration, len(r.Clients))...)
	for i, participant := range r.Clients {
		release := r.Vectors[i*length : (i+1)*length]
		d, ok := m.means.Of(r, i)
		if !ok || participant >= m.Participants {
			continue
		}
		e.known[i] = d
		e.totals[d.Cluster] += d.Weight
		centre := st.Hypotheses[d.Cluster*n : (d.Cluster+1)*n]
		y, u := e.moves[2*n*i:][:n], e.moves[2*n*i+n:][:n]
		last, _, _, _ := m.kept(st, participant)
		copy(u, last)
		m.pullBy(u, centre, st.Memory[:m.toldLength()], d.Variance, d.Steps, m.size(d.Weight))
		mean := e.means[2*n*d.Cluster:][:2*n]
		for j := range u {
			y[j] = (release[j] - u[j]) / (m.Run.Algorithm.Local.Step * d.Steps)
			u[j] -= centre[j]
			mean[j] += d.Weight * y[j]
			mean[n+j] += d.Weight * u[j]
		}
	}
	products, squares := m.sums(st)
	for i, participant := range r.Clients {
		d := e.known[i]
		if d.Weight == 0 || d.Variance == 0 { // without noise there is nothing to balance
			continue
		}
		mean, total := e.means[2*n*d.Cluster:][:2*n], e.totals[d.Cluster]
		_, gradients, distances, numbers := m.kept(st, participant)
		scale := m.Run.Algorithm.Local.Step * d.Steps
		noise := d.Variance / (scale * scale)
		for j := range n {
			y := e.moves[2*n*i+j] - mean[j]/total
			u := e.moves[2*n*i+n+j] - mean[n+j]/total
			gradients[j] += y
			distances[j] += u
			products[j] += y * u / noise
			squares[j] += u * u / noise
		}
		numbers[keptRounds]++
		numbers[keptNoise], numbers[keptSize] = noise, m.size(d.Weight)
	}
}

// participantSums is what the estimate needs of one participant: sums over rounds of its mean
// gradient and its distance.
type participantSums struct {
	y, u       []float64
	rounds     float64
	noise      float64 // variance of a coordinate of one round's y
	perExample float64 // one over the number of examples; 0: not public
}

// coordinate is the estimate for one of them.
type coordinate struct {
	curvature, spread  float64
	force, information float64 // curvature = force/information before it is drawn to the mean
}

const (
	// enough is the standard error of the mean curvature, relative to it, at which
	// participants stop going on alone.
	enough = 0.1
	// curvatureScatter is how far a coordinate's curvature may be from the mean one, relative
	// to it, before its own releases tell.
	curvatureScatter = 0.5
	// doubt is how many standard errors are taken off a spread: participants keep a
	// coordinate to themselves on evidence only.
	doubt = 2
	// spreadSteps is how many powers of two are tried for a spread.
	spreadSteps = 16
)

// estimates says whether a round's end is one at which the server estimates anew:
// later on little changes in a round.
func estimates(round int) bool { return round <= 40 || round%4 == 0 }

// estimate finds curvatures and spreads from all rounds so far. In a coordinate
// y + h*u is the same draw in all rounds, of variance spread + h*dispersion/examples,
// and noise. The second part is the sampling of examples: where the loss is a
// likelihood its gradients vary as much as it curves.
func (m *meanRegularised) estimate(st *fl.State) {
	e := &m.spread
	least := m.sumUp(st)
	if len(e.participants) < 2 || !estimates(st.Round) {
		return
	}
	told := st.Memory[:m.toldLength()]
	e.guess = append(e.guess[:0], told...)
	products, squares := m.sums(st)
	known := told[toldCurvature] > 0
	for range 2 {
		var forces, informations float64
		for i := range m.n {
			c := m.fit(i, least, products[i], squares[i])
			e.guess[toldEach+i], e.guess[toldEach+m.n+i] = c.curvature, c.spread
			forces += c.force
			informations += c.information
		}
		if forces > 0 && informations > 0 {
			e.guess[toldCurvature] = forces / informations
			known = known || forces*forces*enough*enough >= informations
		}
		m.disperse()
	}
	if known {
		copy(told, e.guess)
	}
}

// sumUp collects the participants that have released, and the least variance of a mean over
// rounds.
func (m *meanRegularised) sumUp(st *fl.State) (least float64) {
	e := &m.spread
	e.participants, least = e.participants[:0], math.Inf(1)
	for participant := range m.Participants {
		_, y, u, numbers := m.kept(st, participant)
		if numbers[keptRounds] == 0 {
			continue
		}
		one := participantSums{y: y, u: u, rounds: numbers[keptRounds], noise: numbers[keptNoise]}
		if size := numbers[keptSize]; size > 0 {
			one.perExample = 1 / size
		}
		e.participants = append(e.participants, one)
		least = min(least, one.noise/one.rounds)
	}
	return least
}

// fit tries spreads for a coordinate. At each of them the likelihood, with a normal
// prior around the mean curvature, has its largest value at a curvature in closed
// form; the best pair is taken.
func (m *meanRegularised) fit(i int, least, product, square float64) (best coordinate) {
	e := &m.spread
	mean, prior := e.guess[toldCurvature], 0.0
	if mean > 0 {
		prior = 1 / (curvatureScatter * curvatureScatter * mean * mean)
	}
	dispersion := e.guess[toldDispersion] * max(0, e.guess[toldEach+i])
	most := math.Inf(-1)
	for step := range spreadSteps {
		spread := 0.0
		if step > 0 {
			spread = least / 16 * math.Exp2(float64(step))
		}
		var yy, yu, uu, logs float64
		for k := range e.participants {
			s := &e.participants[k]
			total := spread + dispersion*s.perExample
			shrink := total / (s.noise * (s.rounds*total + s.noise))
			y, u := s.y[i], s.u[i]
			yy += shrink * y * y
			yu += shrink * y * u
			uu += shrink * u * u
			logs += math.Log1p(s.rounds * total / s.noise)
		}
		c := coordinate{spread: spread, force: yu - product, information: max(0, square-uu)}
		if c.information+prior > 0 {
			c.curvature = (c.force + prior*mean) / (c.information + prior)
		}
		h := c.curvature
		likelihood := yy + 2*h*c.force - h*h*c.information - logs - prior*(h-mean)*(h-mean)
		if likelihood > most {
			most, best = likelihood, c
		}
	}
	best.spread = m.evident(i, dispersion, best)
	return best
}

// evident is the spread by the weighted mean over participants of (sum/rounds)^2 less what
// noise and sampling explain, and less what may be chance.
func (m *meanRegularised) evident(i int, dispersion float64, c coordinate) float64 {
	var sum, weights float64
	for k := range m.spread.participants {
		s := &m.spread.participants[k]
		mean := (s.y[i] + c.curvature*s.u[i]) / s.rounds
		known := s.noise/s.rounds + dispersion*s.perExample
		weight := 1 / ((known + c.spread) * (known + c.spread))
		sum += weight * (mean*mean - known)
		weights += weight
	}
	return max(0, sum/weights-doubt*math.Sqrt(2/weights))
}

// disperse regresses what noise leaves of every participant's squared mean on one over its
// number of examples, coordinate by coordinate: the slope is the dispersion.
func (m *meanRegularised) disperse() {
	e := &m.spread
	last := e.guess[toldDispersion]
	var top, bottom float64
	for i := range m.n {
		h, spread := max(0, e.guess[toldEach+i]), e.guess[toldEach+m.n+i]
		var w, wx, we, wxx, wxe float64
		for k := range e.participants {
			s := &e.participants[k]
			mean, noise, x := (s.y[i]+h*s.u[i])/s.rounds, s.noise/s.rounds, h*s.perExample
			expected := noise + spread + last*x
			weight := 1 / (expected * expected)
			w += weight
			wx += weight * x
			we += weight * (mean*mean - noise)
			wxx += weight * x * x
			wxe += weight * x * (mean*mean - noise)
		}
		top += wxe - wx*we/w
		bottom += wxx - wx*wx/w
	}
	e.guess[toldDispersion] = 0
	if top > 0 && bottom > 0 {
		e.guess[toldDispersion] = top / bottom
	}
}
