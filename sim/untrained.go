package sim

import (
	"errors"
	"fmt"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/contacts"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
)

// Untrained is how good the order is in which the returned models put people by their risk,
// beside that of scores which nobody trained: if these are as good, training was for nothing.
// Intervals are over households, whose members fall ill together; the epidemic counts as
// given. It is known in simulation only.
type Untrained struct {
	Persons   int `json:"persons"`
	Positives int `json:"positives"` // who fall ill; 0: nobody, or it is not known who does
	// AveragePrecision and AUC are the models'; null where nobody falls ill.
	AveragePrecision *metrics.Figure `json:"average_precision"`
	AUC              *metrics.Figure `json:"auc"`
	Rivals           []Rival         `json:"rivals"`
	// Best is the rival with the highest average precision on these people, which favours it
	// a little, and Verdict whether the models are better than it, worse, or neither can be
	// told from the interval of the difference. Empty where nobody falls ill.
	Best    string `json:"best"`
	Verdict string `json:"verdict"`
}

// Rival is a score that nobody trained.
type Rival struct {
	Name             string          `json:"name"`
	AveragePrecision *metrics.Figure `json:"average_precision"`
	AUC              *metrics.Figure `json:"auc"`
	// Difference is the models' average precision less this one's, paired.
	Difference *metrics.Figure `json:"difference"`
}

// Prevalence is the share of people who fall ill.
func (u *Untrained) Prevalence() float64 { return float64(u.Positives) / float64(max(1, u.Persons)) }

// Strongest is the best rival; nil: none has a figure.
func (u *Untrained) Strongest() *Rival {
	for i := range u.Rivals {
		if u.Best != "" && u.Rivals[i].Name == u.Best {
			return &u.Rivals[i]
		}
	}
	return nil
}

// compareUntrained holds what the models answer against the rivals' scores, of the people of
// some who are judged, all together. Nil: there are no people.
func (s *Simulation) compareUntrained(held []*data.Client, parts []metrics.Answers) (*Untrained, error) {
	var scores []float64
	var positive []bool
	var household []uint32
	var names []string
	var rivals [][]float32
	units := uint32(0)
	for i, c := range held {
		if c == nil || c.People == nil { // of nobody, if the run was stopped
			return nil, nil
		}
		g := contacts.HeldBy(c.People)
		if g == nil {
			return nil, nil
		}
		scores, household = append(scores, parts[i].Outputs...), append(household, g.Household...)
		for _, y := range parts[i].Targets {
			positive = append(positive, y == 1)
		}
		for _, h := range g.Household {
			units = max(units, h+1)
		}
		for k, r := range g.Rivals(g.Days) {
			if i == 0 {
				names, rivals = append(names, r.Name), append(rivals, nil)
			}
			rivals[k] = append(rivals[k], r.Scores...)
		}
	}
	ranked, errs := make([]metrics.Ranking, 1+len(rivals)), make([]error, 1+len(rivals))
	s.rounds.Each(len(ranked), func(_, i int) {
		if i == 0 {
			ranked[i], errs[i] = metrics.Rank(scores, positive, household, int(units))
		} else {
			ranked[i], errs[i] = metrics.Rank(rivals[i-1], positive, household, int(units))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	u := &Untrained{Persons: len(scores), AveragePrecision: ranked[0].AveragePrecision, AUC: ranked[0].AUC}
	for _, p := range positive {
		if p {
			u.Positives++
		}
	}
	highest := event.Number(-1)
	for i, r := range ranked[1:] {
		d, _, err := ranked[0].Less(r)
		if err != nil {
			return nil, fmt.Errorf("judge: %w", err)
		}
		u.Rivals = append(u.Rivals, Rival{names[i], r.AveragePrecision, r.AUC, d})
		if a := r.AveragePrecision; a != nil && d != nil && a.Value > highest {
			highest, u.Best, u.Verdict = a.Value, names[i], verdict(d, false)
		}
	}
	return u, nil
}

// population is what the people look like that were trained on; nil: there are none.
func (s *Simulation) population() *contacts.Figures {
	if len(s.given.Train) == 0 || s.given.Train[0].People == nil {
		return nil
	}
	g := contacts.GraphOf(s.given.Train[0].People)
	if g == nil {
		return nil
	}
	f := g.Figures()
	return &f
}
