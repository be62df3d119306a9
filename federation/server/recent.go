package server

import (
	"time"

	"github.com/coterie-fl/coterie/federation/store"
)

// RoundEnd is how a round of training ended.
type RoundEnd struct {
	Round     int     `json:"round"` // from 1
	Asked     int     `json:"asked"`
	Released  int     `json:"released"`
	Declined  int     `json:"declined"`
	Seconds   float64 `json:"seconds"`
	Abandoned bool    `json:"abandoned"`
}

// mostRecent is how many ended rounds a status tells of.
const mostRecent = 200

// remember keeps how a round ended, for those who watch.
func (h *chronicle) remember(e RoundEnd) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.recent = append(h.recent, e); len(h.recent) >= 2*mostRecent {
		h.recent = append(h.recent[:0], h.recent[len(h.recent)-mostRecent:]...)
	}
}

// count adds one answer up.
func (e *RoundEnd) count(kind store.AnswerKind) {
	e.Asked++
	switch kind {
	case store.Released:
		e.Released++
	case store.Declined:
		e.Declined++
	}
}

// end is how a round ends that is open.
func (r *openRound) end(abandoned bool) RoundEnd {
	e := RoundEnd{Round: r.number + 1, Seconds: time.Since(r.opened).Seconds(), Abandoned: abandoned}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kind := range r.answers {
		e.count(kind)
	}
	return e
}
