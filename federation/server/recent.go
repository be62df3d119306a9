package server

import (
	"math"
	"time"

	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/fl"
)

// RoundEnd is how a round of training ended.
type RoundEnd struct {
	Round     int     `json:"round"` // from 1
	Asked     int     `json:"asked"`
	Released  int     `json:"released"`
	Declined  int     `json:"declined"`
	Seconds   float64 `json:"seconds"`
	Abandoned bool    `json:"abandoned"`
	clusters
}

// clusters are what a round left of those that the server makes of releases: what it knows
// without being told anything.
type clusters struct {
	Sizes  []int        `json:"sizes"`  // releases in every cluster; null: there is one model, or the server was started since
	Models [][2]float64 `json:"models"` // the first two parameters of each model, after the round
}

// clustersOf are those of a round that was aggregated; none where there is one model, or one
// that has left the numbers.
func clustersOf(state *fl.State, models int, out fl.Outcome) (c clusters) {
	if models < 2 || models > mostModels {
		return c
	}
	parameters := len(state.Hypotheses) / models
	sizes, at := make([]int, models), make([][2]float64, models)
	for _, j := range out.Assigned {
		if j >= 0 && j < models {
			sizes[j]++
		}
	}
	for j := range at {
		copy(at[j][:], state.Hypotheses[j*parameters:(j+1)*parameters])
		for _, v := range at[j] {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return c
			}
		}
	}
	return clusters{sizes, at}
}

// mostModels is of how many a status tells.
const mostModels = 24

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
	r.mu.Lock()
	defer r.mu.Unlock()
	return RoundEnd{Round: r.number + 1, Asked: len(r.clients), Released: r.counts[store.Released], Declined: r.counts[store.Declined], Seconds: time.Since(r.opened).Seconds(), Abandoned: abandoned, clusters: r.clusters}
}
