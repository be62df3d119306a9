package sim

import (
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

// mostPriced is how many rounds of a history get an epsilon: accountants take a while,
// and between two of so many rounds a total hardly bends.
const mostPriced = 100

// priceRounds writes what the most exposed participant had spent after some of the rounds.
// Everybody's noise is found for the whole run at once, so the total after a round says
// what a run that had ended there would have cost. Where participants are sampled, or
// somebody is promised nothing, it says nothing.
func (s *Simulation) priceRounds(h *History, spends []account.Guarantee) error {
	if s.run.Algorithm.ClientsPerRound != len(spends) || len(h.Rounds) == 0 {
		return nil
	}
	most := 0
	for i, g := range spends {
		if g.Claim == event.ClaimNone || math.IsInf(g.Epsilon, 1) {
			return nil
		}
		if g.Epsilon > spends[most].Epsilon {
			most = i
		}
	}
	at := spreadOut(len(h.Rounds), mostPriced)
	epsilons := make([]float64, len(at))
	errs := make([]error, len(at))
	s.rounds.pool.Each(len(at), func(_, i int) {
		then := s.rounds.Participants[most]
		then.Paid = paidBy(h.Rounds[at[i]].Round, then.Paid)
		var g account.Guarantee
		g, _, errs[i] = s.rounds.Algorithm.Spend(&then)
		epsilons[i] = g.Epsilon
	})
	for i, err := range errs {
		if err != nil {
			return err
		}
		h.Rounds[at[i]].Epsilon = numberIf(true, epsilons[i])
	}
	return nil
}

// paidBy is what somebody who is asked in every round had paid for after a round, of all
// that it paid for in the end: choices, and releases of methods that end by training
// alone, come first.
func paidBy(round int, end fl.Paid) fl.Paid {
	then := fl.Paid{Rounds: min(round, end.Rounds), Choices: min(round, end.Choices)}
	if end.Moments <= round {
		then.Moments = end.Moments
	}
	return then
}

// spreadOut are at most so many of n places, the first and the last among them.
func spreadOut(n, most int) []int {
	at := make([]int, min(n, most))
	for i := range at {
		at[i] = i * (n - 1) / max(1, len(at)-1)
	}
	return slices.Compact(at)
}
