package sim

import (
	"cmp"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

// Budget is what some clients spent, each of them.
type Budget struct {
	Epsilon event.Number `json:"epsilon"`
	Clients int          `json:"clients"`
}

// CrowdFigures are of a run that keeps nothing of clients who were never asked.
type CrowdFigures struct {
	Asked int `json:"asked"` // clients who were, at least once
	// Judged is how many of those that train the figures of training examples, and of held-out
	// ones under judge.by test, are of: drawn by the seed.
	Judged int `json:"judged"`
	// PeakMemoryBytes is the most memory that the process had so far; 0: the system does not say.
	PeakMemoryBytes int64 `json:"peak_memory_bytes"`
}

func (s *Simulation) crowdFigures() *CrowdFigures {
	c := s.rounds.crowd
	if c == nil {
		return nil
	}
	return &CrowdFigures{Asked: c.size, Judged: min(listed, s.rounds.Count()), PeakMemoryBytes: peakMemory()}
}

// eachSpend is everybody who was ever asked, where updates are added up: its number, its
// total, where its last release fell, and whether it declined.
func (s *Simulation) eachSpend(each func(client int, epsilon float64, fell int, declined bool)) {
	if c := s.rounds.crowd; c != nil {
		c.all(func(a *asked) { each(a.Client, a.Account.Epsilon(), a.Fell, a.Declined) })
		return
	}
	for i := range s.rounds.Participants {
		each(i, s.rounds.Participants[i].Account.Epsilon(), s.progress.Cluster[i], s.progress.Declined[i])
	}
}

func (s *Simulation) stateUpdates() fl.Privacy {
	if c := s.rounds.crowd; c != nil {
		return s.rounds.Algorithm.StateTotals(c.spends())
	}
	return s.rounds.Algorithm.StateUpdates(s.rounds.Participants)
}

// addBudgets is what is added up round by round. Of very many clients, those who spent the
// same are counted instead of listed.
func (s *Simulation) addBudgets(res *Result) {
	k := s.rounds.Count()
	few := k <= listed
	budgets, counts, declined := make([]event.Number, 0, min(k, listed)), map[float64]int{}, 0
	if few {
		budgets = budgets[:k]
	}
	members := make([][]float64, s.rounds.Algorithm.Outline().Models)
	s.eachSpend(func(client int, epsilon float64, fell int, no bool) {
		if few {
			budgets[client] = event.Number(epsilon)
		}
		counts[epsilon]++
		k--
		if fell >= 0 {
			members[fell] = append(members[fell], epsilon)
		}
		if no {
			declined++
			if few {
				res.History.Declined = append(res.History.Declined, client)
			}
		}
	})
	slices.Sort(res.History.Declined)
	res.Privacy.Declined, res.Privacy.DeclinedRequests = declined, s.progress.Requests
	for _, totals := range members {
		median, most := fl.MedianAndMax(totals)
		res.History.Clusters = append(res.History.Clusters, ClusterBudget{Clients: len(totals), Median: event.Number(median), Max: event.Number(most)})
	}
	if few {
		res.History.Budgets = budgets
		return
	}
	if k > 0 { // who was never asked
		counts[0] += k
	}
	res.History.Spends = counted(counts)
}

// mostSpends is how many different totals are listed; of more, totals are rounded up.
const mostSpends = 1000

// counted lists totals in ascending order.
func counted(counts map[float64]int) (out []Budget) {
	if len(counts) > mostSpends {
		high := 0.0
		for v := range counts {
			if !math.IsInf(v, 1) {
				high = max(high, v)
			}
		}
		step, fewer := high/(mostSpends-2), map[float64]int{}
		for v, n := range counts {
			if v > 0 && !math.IsInf(v, 1) {
				v = step * math.Ceil(v/step)
			}
			fewer[v] += n
		}
		counts = fewer
	}
	for v, n := range counts {
		out = append(out, Budget{event.Number(v), n})
	}
	slices.SortFunc(out, func(a, b Budget) int { return cmp.Compare(a.Epsilon, b.Epsilon) })
	return out
}
