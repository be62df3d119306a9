package fl

import "github.com/coterie-fl/coterie/internal/kernel"

// Sum is what a round's releases add up to, where the server needs no more of them: a
// release is added as it comes, and its memory is free again. Releases must be added in
// client order, for the last bits of a sum depend on it.
type Sum struct {
	Clients  []int        // whose releases were added
	Assigned []int        // by release: 0, or -1 if it declares what cannot be and was left out
	Heads    [][2]float64 // by release: its first two values
	Weight   float64      // of all that were added
	Values   []float64    // every model times its weight
	n        int          // parameters of a model
	declares bool
	equal    bool // nobody weighs more than others
}

// NewSum is room for the sum of a round's releases. It is nil where the method or the
// protection needs them one by one.
func (a *Algorithm) NewSum() *Sum {
	if !a.sums() {
		return nil
	}
	return &Sum{Values: make([]float64, a.length), n: a.setup.Parameters, declares: a.outline.Declares, equal: a.setup.Run.Algorithm.Weights != "counts"}
}

// sums says whether a round's sum is enough for the server: of models, that is; sums of
// second moments are no models, and the server adds them up itself.
func (a *Algorithm) sums() bool {
	return a.summed && !a.outline.Single && a.outline.Moments == 0 && a.length > 0
}

// Add adds a client's release.
func (s *Sum) Add(client int, release []float64) {
	s.Clients = append(s.Clients, client)
	var head [2]float64
	copy(head[:], release[:s.n])
	s.Heads = append(s.Heads, head)
	weight := 1.0
	if s.declares {
		d, ok := Declared(release[s.n:], 1, s.equal)
		if !ok {
			s.Assigned = append(s.Assigned, -1)
			return
		}
		weight = d.Weight
	}
	s.Assigned = append(s.Assigned, 0)
	s.Weight += weight
	if weight == 1 { // to the same bits, and quicker
		kernel.Axpy(1, release[:s.n], s.Values[:s.n])
		return
	}
	for i, v := range release[:s.n] {
		s.Values[i] += weight * v
	}
}

// Reset empties the sum for another round.
func (s *Sum) Reset() {
	clear(s.Values)
	s.Clients, s.Assigned, s.Heads, s.Weight = s.Clients[:0], s.Assigned[:0], s.Heads[:0], 0
}

// asOne turns the sum into one release that stands for all: their mean. There is none if
// nobody released anything of use.
func (s *Sum) asOne(declined int) Releases {
	if s.Weight == 0 {
		return Releases{Declined: declined}
	}
	for i := range s.Values[:s.n] {
		s.Values[i] /= s.Weight
	}
	if s.declares {
		Declaration{Weight: 1, Steps: 1}.write(s.Values[s.n:])
	}
	return Releases{Clients: []int{0}, Vectors: s.Values, Declined: declined}
}
