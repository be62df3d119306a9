package whatif

import (
	"fmt"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// Unknown is what a question about training solves for.
type Unknown string

// What can be solved for; all but epsilon keep a target.
const (
	Epsilon Unknown = "epsilon"
	Noise   Unknown = "noise"
	Length  Unknown = "steps"
	Rate    Unknown = "rate"
)

// Training asks what noised gradient steps cost, or which noise, length or rate keeps a
// target.
type Training struct {
	By     // its lattice is the plan's
	Plan   account.Training
	Solve  Unknown
	Target float64 // of epsilon, unless that is solved for
	Sized  bool    // rate or length come from the number of examples
}

// Answer solves for what is asked, and prices the plan.
func (q Training) Answer() (Answer, error) {
	p, lines := q.Plan, []string(nil)
	var g account.Guarantee
	var err error
	switch q.Solve {
	case Noise:
		p, g, err = p.WithNoiseFor(q.Method, q.Target, q.Delta, q.Orders...)
	case Length:
		p, g, err = p.WithStepsFor(q.Method, q.Target, q.Delta, q.Orders...)
	case Rate:
		p, g, err = p.WithRateFor(q.Method, q.Target, q.Delta, q.Orders...)
	default:
		g, err = p.Guarantee(q.Method, q.Delta, q.Orders...)
	}
	if err != nil {
		return Answer{}, err
	}
	if q.Solve != Epsilon {
		line := planned(p)
		if q.Solve == Length && p.Steps == 0 {
			if line, err = q.notOneStep(p); err != nil {
				return Answer{}, err
			}
		}
		lines = append(lines, line)
	}
	return q.priced(p, g, lines)
}

// notOneStep says what a first step would need that is too much for the target.
func (q Training) notOneStep(p account.Training) (string, error) {
	p.Steps = 1
	one, err := p.Guarantee(q.Method, q.Delta, q.Orders...)
	if err != nil {
		return "", err
	}
	enough, _, err := p.WithNoiseFor(q.Method, q.Target, q.Delta, q.Orders...)
	if err != nil {
		return "", err
	}
	length, of := lengthOf(p), fmt.Sprintf("at rate %.8g", p.Rate)
	if p.Sampling != event.Poisson {
		of = fmt.Sprintf("on batches of %d of %d examples", p.Batch, p.Examples)
	}
	return fmt.Sprintf("%ss 0: one %s with noise %.8g %s costs %s, above the target of %v; noise %.8g would do for one",
		length, length, p.Noise, of, one.Told(), q.Target, enough.Noise), nil
}

// lengthOf is what a plan's Steps count.
func lengthOf(p account.Training) string {
	if p.Sampling == event.Shuffle {
		return "epoch"
	}
	return "step"
}

// planned tells a plan in the words of its sampling.
func planned(p account.Training) string {
	if p.Sampling == event.Poisson {
		return fmt.Sprintf("noise %.8g, rate %.8g, steps %d", p.Noise, p.Rate, p.Steps)
	}
	return fmt.Sprintf("noise %.8g, batch %d, examples %d, %ss %d", p.Noise, p.Batch, p.Examples, lengthOf(p), p.Steps)
}

// priced tells a plan and its cost, and beside shuffled batches what the papers read.
func (q Training) priced(p account.Training, g account.Guarantee, lines []string) (Answer, error) {
	own := map[string]any{"noise": p.Noise, "steps": p.Steps}
	if p.Sampling == event.Poisson {
		own["rate"] = p.Rate
		if q.Sized {
			g.NotCovered = append(g.NotCovered, account.SizeNotCovered)
		}
	} else {
		own["batch"], own["examples"] = p.Batch, p.Examples
	}
	if p.Sampling == event.Shuffle {
		delete(own, "steps")
		own["epochs"] = p.Steps
		if paper, err := p.AsPaper(); err == nil {
			read, err := paper.Guarantee(account.MethodRDP, q.Delta, q.Orders...)
			if err != nil {
				return Answer{}, err
			}
			own["paper_epsilon"] = event.Number(read.Epsilon)
			lines = append(lines, "the papers' reading, as if every batch were a Poisson sample, which no proof covers: "+read.Told())
		}
	}
	r, err := p.Release()
	return Answer{Cost: g, Own: own, Lines: lines, Release: r}, err
}
