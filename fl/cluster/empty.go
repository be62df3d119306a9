package cluster

import "github.com/coterie-fl/coterie/fl"

// Relocation moves models that nobody trains to released vectors. It reads releases
// only, so it costs no privacy.
type Relocation struct {
	After int // rounds without an update
	taken []bool
}

// Move counts every model's rounds without an update, from the clusters of the round's
// releases, and moves those that were idle for too long to the released vectors farthest
// from their own clusters. It says how many it moved.
func (m *Relocation) Move(st *fl.State, r fl.Releases, assigned []int, n int) (moved int) {
	if st.Idle == nil {
		st.Idle = make([]int, len(st.Hypotheses)/n)
	}
	length := len(r.Vectors) / max(1, len(r.Clients))
	for j := range st.Idle {
		if st.Idle[j] < m.After {
			continue
		}
		if moved == 0 {
			m.taken = append(m.taken[:0], make([]bool, len(r.Clients))...)
		}
		i := m.farthest(st, r, assigned, n, length)
		if i < 0 {
			break
		}
		m.taken[i] = true
		copy(st.Hypotheses[j*n:(j+1)*n], r.Vectors[i*length:])
		st.Idle[j] = 0
		moved++
	}
	return moved
}

// Note counts rounds without an update: sizes are the round's clusters'.
func Note(idle []int, sizes []int) {
	for j, size := range sizes {
		idle[j]++
		if size > 0 {
			idle[j] = 0
		}
	}
}

// farthest is the released vector farthest from its own model among those not yet
// taken, -1 if none is left.
func (m *Relocation) farthest(st *fl.State, r fl.Releases, assigned []int, n, length int) int {
	best, most := -1, -1.0
	for i, j := range assigned {
		if m.taken[i] || j < 0 {
			continue
		}
		if d := SquaredDistance(r.Vectors[i*length:i*length+n], st.Hypotheses[j*n:(j+1)*n]); d > most {
			best, most = i, d
		}
	}
	return best
}
