package sweep

import (
	"slices"

	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/sim"
)

// pivot is the one run that is sent: every silo trains at the public setting, and
// trials follow the means that it leaves (paper 002, appendix E.3).
type pivot struct {
	*sim.Rounds
	sent []fl.Broadcast // of every round, and of the end
}

// train makes the pivot's rounds and keeps what the server sent in each.
func (p *pivot) train(rounds int) error {
	all := make([]int, len(p.Participants))
	for i := range all {
		all[i] = i
	}
	for range rounds {
		if err := p.note(); err != nil {
			return err
		}
		if err := p.Make(all); err != nil {
			return err
		}
	}
	return p.note()
}

// note keeps a copy of what is sent: the state goes on to change.
func (p *pivot) note() error {
	b, err := p.Algorithm.Broadcast(p.State)
	if err != nil {
		return err
	}
	b.Hypotheses, b.Memory = slices.Clone(b.Hypotheses), slices.Clone(b.Memory)
	p.sent = append(p.sent, b)
	return nil
}

// end is what the server sent last: a public model.
func (p *pivot) end() fl.Broadcast { return p.sent[len(p.sent)-1] }
