package cluster_test

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/cluster"
)

// TestWeightsThatNobodyHas: where all weigh the same, a release that declares another weight is left out;
// where they declare their numbers of examples, it counts as it says.
func TestWeightsThatNobodyHas(t *testing.T) {
	const n = 2
	r := fl.Releases{}
	for i, release := range [][]float64{{1, 1, 1, 0, 0.1, 1}, {3, 3, 1, 0, 0.1, 1}, {7, 7, 2e9, 0, 0.1, 1}, {9, 9, 0.5, 0, 0.1, 1}} {
		r.Clients, r.Vectors = append(r.Clients, i), append(r.Vectors, release...)
	}
	for counts, want := range map[bool]float64{false: 2, true: 7} {
		m := cluster.Means{Models: 1, N: n, Declares: true, Counts: counts}
		st := &fl.State{Hypotheses: make([]float64, n)}
		m.Move(st, r)
		if math.Abs(st.Hypotheses[0]-want) > 1e-6 {
			t.Errorf("counts %v: the mean is %v, want %v", counts, st.Hypotheses[0], want)
		}
		if left := m.Assigned[2] == -1 && m.Assigned[3] == -1; left == counts {
			t.Errorf("counts %v: clusters are %v", counts, m.Assigned)
		}
	}
}
