package fl

import (
	"fmt"

	"github.com/coterie-fl/coterie/dp/event"
)

// Price is what the rounds from one on will cost a silo that Prepare has settled, as
// one release: its owner can decline before anything is trained.
func (s *Silo) Price(p *Participant, from int) (event.Release, error) {
	rounds := s.cfg.Rounds - from
	if from < 0 || rounds < 1 {
		return event.Release{}, fmt.Errorf("round %d is not among the %d rounds", from+1, s.cfg.Rounds)
	}
	if !p.Plan.private() {
		return p.Plan.release(false, false)
	}
	choices := 0
	for round := from; round < s.cfg.Rounds; round++ {
		if s.method.choosing(round) {
			choices++
		}
	}
	return p.Plan.training(rounds, choices, s.owesMoments(from, p)).Release()
}
