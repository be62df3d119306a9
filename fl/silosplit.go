package fl

import "math"

// splitEmpty puts models to use that no silo chose. Silos of two groups may prefer
// the same one of the first, random models, and then stay together for good: a model
// that nobody trains is soon worse for everybody. The cluster whose releases part
// most clearly is halved, and the empty model becomes the mean of one half; silos
// choose again in the next round. It reads releases only, so it costs no privacy.
func (c *clustered) splitEmpty(st *State, r Releases) {
	if c.cfg.Empty != "split" || !c.choosing(st.Round) {
		return
	}
	of := append([]int(nil), c.assigned...)
	for empty, weight := range c.weights {
		if weight != 0 {
			continue
		}
		var widest parting
		for cluster := range c.models {
			if p := c.part(r, of, cluster); p.strength > widest.strength {
				widest = p
			}
		}
		if widest.second == nil {
			return
		}
		for _, i := range widest.second {
			of[i] = empty
		}
		c.setMean(st, r, of, empty)
		c.setMean(st, r, of, widest.cluster)
	}
}

// parting is a cluster in two halves. Strength is what the largest eigenvalue of the
// Gram matrix of its releases, around their mean, has above their noise.
type parting struct {
	cluster  int
	strength float64
	second   []int // releases that leave; nil if there is nothing to part
}

// part halves a cluster by the sign of the first principal coordinate: what two
// groups have apart is one direction, in which noise, spread over all, hardly shows.
func (c *clustered) part(r Releases, of []int, cluster int) parting {
	var members []int
	for i, j := range of {
		if j == cluster {
			members = append(members, i)
		}
	}
	if len(members) < 2 {
		return parting{}
	}
	gram, noise := c.gram(r, members)
	value, at := leading(gram, len(members))
	p := parting{cluster: cluster, strength: value - noise}
	for i, x := range at {
		if x*at[0] < 0 { // the first one's side stays
			p.second = append(p.second, members[i])
		}
	}
	if p.second == nil || !(p.strength > 0) || math.IsInf(p.strength, 1) {
		return parting{}
	}
	return p
}

// gram is the matrix of inner products of the members' releases around their mean,
// and the noise on its diagonal, made equal: a silo with more of it than the others
// is no group.
func (c *clustered) gram(r Releases, members []int) (matrix []float64, noise float64) {
	length, m := c.ReleaseLength(), len(members)
	out, own := make([]float64, m*m), make([]float64, m)
	for i, at := range members {
		d, _ := c.declared(r.Vectors[at*length:(at+1)*length], c.models)
		own[i] = d.variance * float64(c.n)
		noise = max(noise, own[i])
	}
	for i := range m {
		a := r.Vectors[members[i]*length:][:c.n]
		for j := range i + 1 {
			b := r.Vectors[members[j]*length:][:c.n]
			var sum float64
			for d, x := range a {
				sum += x * b[d]
			}
			out[i*m+j], out[j*m+i] = sum, sum
		}
		out[i*m+i] += noise - own[i]
	}
	rows, all := make([]float64, m), 0.0
	for i := range m {
		for j := range m {
			rows[i] += out[i*m+j] / float64(m)
		}
		all += rows[i] / float64(m)
	}
	for i := range m {
		for j := range m {
			out[i*m+j] += all - rows[i] - rows[j]
		}
	}
	return out, noise
}

// leading is the largest eigenvalue of a positive m by m matrix and its vector, by
// power iteration: near enough to tell sides apart.
func leading(matrix []float64, m int) (value float64, vector []float64) {
	vector, next := make([]float64, m), make([]float64, m)
	for i := range vector {
		vector[i] = 1 + float64(i%7) // no symmetry to be trapped in; the mean is projected out
	}
	for range 500 {
		value = 0
		for i := range next {
			next[i] = 0
			for j, x := range vector {
				next[i] += matrix[i*m+j] * x
			}
			value += next[i] * next[i]
		}
		if value = math.Sqrt(value); value == 0 {
			break
		}
		for i := range next {
			next[i] /= value
		}
		vector, next = next, vector
	}
	return value, vector
}
