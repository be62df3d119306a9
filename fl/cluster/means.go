package cluster

import "github.com/coterie-fl/coterie/fl"

// Means moves models to the weighted means of the releases that name them.
type Means struct {
	Models   int // of the server
	N        int // parameters of each
	Declares bool
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
	return fl.Declared(r.Vectors[i*length+m.N:(i+1)*length], m.Models)
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

// Set moves one model to the weighted mean of the releases that of gives its cluster.
func (m *Means) Set(st *fl.State, r fl.Releases, of []int, cluster int) {
	length, total := m.Length(), 0.0
	mean := st.Hypotheses[cluster*m.N : (cluster+1)*m.N]
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
