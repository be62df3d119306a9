package cluster

import (
	"math"

	"github.com/coterie-fl/coterie/fl"
)

// Means moves models to the weighted means of the releases that name them.
type Means struct {
	Models   int // of the server
	N        int // parameters of each
	Declares bool
	Counts   bool      // what a release weighs is what it declares; otherwise all weigh the same
	Robust   *Robust   // what takes the mean's place; nil: nothing does
	Assigned []int     // cluster of every release; -1: it declares what cannot be
	Weights  []float64 // of every cluster's releases
	Sizes    []int
}

// Length is that of a release.
func (m *Means) Length() int {
	if m.Declares {
		return m.N + fl.DeclarationLength
	}
	return m.N
}

// Of is what the i-th release declares; without declarations all weigh the same and
// belong to the one model.
func (m *Means) Of(r fl.Releases, i int) (fl.Declaration, bool) {
	if !m.Declares {
		return fl.Declaration{Weight: 1, Steps: 1}, true
	}
	length := m.Length()
	return fl.Declared(r.Vectors[i*length+m.N:(i+1)*length], m.Models, !m.Counts)
}

// Move moves every model to the weighted mean of its releases. One without releases
// stays.
func (m *Means) Move(st *fl.State, r fl.Releases) {
	m.Assigned = m.Assigned[:0]
	m.Weights = append(m.Weights[:0], make([]float64, m.Models)...)
	m.Sizes = append(m.Sizes[:0], make([]int, m.Models)...)
	for i := range r.Clients {
		d, ok := m.Of(r, i)
		if !ok {
			m.Assigned = append(m.Assigned, -1)
			continue
		}
		m.Assigned = append(m.Assigned, d.Cluster)
		m.Weights[d.Cluster] += d.Weight
		m.Sizes[d.Cluster]++
	}
	for cluster, total := range m.Weights {
		if total > 0 {
			m.Set(st, r, m.Assigned, cluster)
		}
	}
}

// Set moves one model to the weighted mean of the releases that of gives its cluster, or
// to what stands in the mean's place.
func (m *Means) Set(st *fl.State, r fl.Releases, of []int, cluster int) {
	length, total := m.Length(), 0.0
	mean := st.Hypotheses[cluster*m.N : (cluster+1)*m.N]
	if m.Robust != nil {
		var vectors [][]float64
		for i, j := range of {
			if j == cluster {
				vectors = append(vectors, r.Vectors[i*length:i*length+m.N])
			}
		}
		m.Robust.Centre(mean, vectors)
		return
	}
	clear(mean)
	for i, j := range of {
		if j != cluster {
			continue
		}
		d, _ := m.Of(r, i)
		total += d.Weight
		for k, v := range r.Vectors[i*length : i*length+m.N] {
			mean[k] += d.Weight * v
		}
	}
	for k := range mean {
		mean[k] /= total
	}
}

// Split puts models to use that nobody chose. Participants of two groups may prefer
// the same one of the first, random models, and then stay together for good: a model
// that nobody trains is soon worse for everybody. The cluster whose releases part
// most clearly is halved, and the empty model becomes the mean of one half; participants
// choose again in the next round. It reads releases only, so it costs no privacy.
func (m *Means) Split(st *fl.State, r fl.Releases) {
	of := append([]int(nil), m.Assigned...)
	for empty, weight := range m.Weights {
		if weight != 0 {
			continue
		}
		var widest parting
		for cluster := range m.Models {
			if p := m.part(r, of, cluster); p.strength > widest.strength {
				widest = p
			}
		}
		if widest.second == nil {
			return
		}
		for _, i := range widest.second {
			of[i] = empty
		}
		m.Set(st, r, of, empty)
		m.Set(st, r, of, widest.cluster)
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
func (m *Means) part(r fl.Releases, of []int, cluster int) parting {
	var members []int
	for i, j := range of {
		if j == cluster {
			members = append(members, i)
		}
	}
	if len(members) < 2 {
		return parting{}
	}
	gram, noise := m.gram(r, members)
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
// and the noise on its diagonal, made equal: a participant with more of it than the others
// is no group.
func (m *Means) gram(r fl.Releases, members []int) (matrix []float64, noise float64) {
	length, k := m.Length(), len(members)
	out, own := make([]float64, k*k), make([]float64, k)
	for i, at := range members {
		d, _ := m.Of(r, at)
		own[i] = d.Variance * float64(m.N)
		noise = max(noise, own[i])
	}
	for i := range k {
		a := r.Vectors[members[i]*length:][:m.N]
		for j := range i + 1 {
			b := r.Vectors[members[j]*length:][:m.N]
			var sum float64
			for d, x := range a {
				sum += x * b[d]
			}
			out[i*k+j], out[j*k+i] = sum, sum
		}
		out[i*k+i] += noise - own[i]
	}
	rows, all := make([]float64, k), 0.0
	for i := range k {
		for j := range k {
			rows[i] += out[i*k+j] / float64(k)
		}
		all += rows[i] / float64(k)
	}
	for i := range k {
		for j := range k {
			out[i*k+j] += all - rows[i] - rows[j]
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
