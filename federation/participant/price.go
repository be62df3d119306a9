package participant

import (
	"errors"
	"fmt"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
)

// prices are what a plan can still ask of this participant.
type prices struct {
	one    event.Release // a round, or of a silo all of them: for the policy's bounds
	all    event.Release // together: for the ledger's ceilings
	rounds int           // that they are; 0: nothing is left to ask
}

// fits holds all that the plan can still ask of this participant against its policy
// and its ledger, before the first release: one that cannot pay to the end would pay
// for nothing. What the server chooses later, how far apart the hypotheses are, is
// taken at its least; see affords. Every number is public or paid for.
func (p *Participant) fits(s *session) error {
	if p.owes(s) {
		return nil
	}
	price, err := p.planned(s)
	if err != nil || price.rounds == 0 {
		return err
	}
	p.explain(price.one)
	if err := p.o.Policy.AllowsRelease(price.one); err != nil {
		return err
	}
	if err := p.o.Ledger.Check(price.all); err != nil {
		return refusal(fmt.Errorf("the plan asks for %s, and all of them must fit before the first is made: %w", price.asked(err), err))
	}
	return nil
}

// asked says how many releases were asked for and, of an error that tells it, how many of
// them would fit.
func (p prices) asked(err error) string {
	text := fmt.Sprintf("%d more releases", p.rounds)
	var short *account.BudgetError
	if p.rounds < 2 || !errors.As(err, &short) || short.Remedy.Of == 0 {
		return text
	}
	each := (short.Remedy.Of + int64(p.rounds) - 1) / int64(p.rounds) // steps of a release
	return fmt.Sprintf("%s, of which %d would fit", text, short.Remedy.Fit/each)
}

// refusal is an error of the ledger, as the participant's half knows it.
func refusal(err error) error {
	if errors.Is(err, ledger.ErrRefused) {
		return fmt.Errorf("%w: %w", errSpent, err)
	}
	return err
}

// planned is the price of every round to come: the participant may be asked in each.
func (p *Participant) planned(s *session) (price prices, err error) {
	next := p.nextRound(s)
	rounds := s.run.Algorithm.Rounds - next
	if rounds == 0 {
		return price, nil
	}
	switch {
	case s.half.Planned != nil:
		price = prices{one: *s.half.Planned, all: *s.half.Planned, rounds: rounds}
		price.all.What = event.Repeated{Times: int64(rounds), Of: price.one.What}
		return price, nil
	case s.half.Respond != nil:
		return price, nil // another than the method answers, and does not say what it costs
	}
	me, err := s.recall(next)
	if err != nil {
		return price, err
	}
	if price.all, price.rounds, err = s.half.Algorithm.PriceAhead(me, next); err != nil {
		return price, fmt.Errorf("%w: the plan has no price: %w", fl.ErrRefused, err)
	}
	price.one = price.all
	if price.all.Relation == event.Metric {
		price.one = first(price.all)
	}
	return price, nil
}

// sayNothing answers a round in which everybody trains alone and nothing was paid: zeros
// take a release's place, and the ledger keeps them, on the terms of the plan's other
// releases, as one that was made no time.
func (s *session) sayNothing(pay *purse, me *fl.Participant) error {
	r, _, err := s.half.Algorithm.PriceAhead(me, pay.slot.Round)
	if err != nil {
		return err
	}
	r.What = event.Repeated{Times: 0, Of: r.What}
	clear(s.out)
	return pay.Reserve(pay.slot.Round, r)
}

// first is one round of a price that lists them.
func first(all event.Release) event.Release {
	switch e := all.What.(type) {
	case event.Repeated:
		all.What = e.Of
	case event.Composed:
		if r, ok := e.Parts[0].(event.Repeated); ok {
			all.What = r.Of
		}
	}
	return all
}

// nextRound is the round after the last one that the ledger knows: rounds that were
// missed before it do not come again.
func (p *Participant) nextRound(s *session) int {
	next := 0
	for r := range s.run.Algorithm.Rounds {
		if _, known := p.o.Ledger.Entry(s.slot(r)); known {
			next = r + 1
		}
	}
	return next
}

// explain says in the log on which terms this participant takes part.
func (p *Participant) explain(r event.Release) {
	p.o.Log.Info("what a release is", spelled(r)...)
	switch {
	case r.Trust == event.TrustServer:
		p.o.Log.Warn("the server is trusted: it is sent this participant's update itself, and whether it adds the noise nobody here can check")
	case r.Claim == event.ClaimHeuristic && r.Relation == event.Metric:
		p.o.Log.Warn("the claim is heuristic: nothing is promised against a server that chooses the plan and the hypotheses, and the size of the noise tells the length of the update")
	}
}

// spelled is a release in words and numbers, for the log. Under the claim metric the
// number to look at is epsilon_switch: it holds whatever the server chooses.
func spelled(r event.Release) []any {
	words := []any{"unit", r.Unit, "relation", r.Relation, "claim", r.Claim, "trust", r.Trust}
	if r.Relation != event.Metric {
		return words
	}
	change, leak := losses(r.What)
	if r.Claim == event.ClaimMetric {
		words = append(words, "epsilon_switch", change)
	}
	return append(words, "epsilon_at_radius", leak)
}

// losses are what a d-private event loses between any two data sets, and at its radius.
func losses(e event.Event) (change, leak float64) {
	switch e := e.(type) {
	case event.MetricLaplace:
		return e.Switch(), e.Leak() + e.Slack
	case event.Composed:
		for _, part := range e.Parts {
			c, l := losses(part)
			change, leak = change+c, leak+l
		}
	}
	return change, leak
}
