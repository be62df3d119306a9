package contacts

import (
	"errors"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/data"
)

// thinned keeps j in person i's example iff the pair's draw is below tau. Nothing takes the
// place of what is not kept, and no other pair is asked.
func (r Rule) thinned(g *Graph, workers int) choice {
	lots := make([]lot, workers)
	for w := range lots {
		lots[w] = secretLot(r.Secret)
	}
	below, all := uint64(0), r.Keep == 1
	if !all {
		below = uint64(r.Keep * 0x1p64) // rounded down: never more than promised
	}
	return func(w, i int, places []int32) []int32 {
		others, _ := g.Contacts(i)
		for place, j := range others {
			if all || lots[w].draw(g.ID[i], g.ID[j]) < below {
				places = append(places, int32(place))
			}
		}
		return places
	}
}

// promiseHolds refuses people with more contacts than was promised that anybody has. To cut
// their lists would not do: which contact is cut depends on the others, so that one who
// goes would let another in, at an example that it had nothing to do with.
func (r Rule) promiseHolds(g *Graph) error {
	over, most, who := 0, r.Degree, int64(0)
	for i, id := range g.ID {
		if contacts := int(g.Offsets[i+1] - g.Offsets[i]); contacts > r.Degree {
			over++
			if contacts > most {
				most, who = contacts, id
			}
		}
	}
	if over > 0 {
		return fmt.Errorf("thinning was promised that nobody has more than %d contacts, but persons who have number %d, and person %d has the most, %d: promise %d, or leave such contacts out of the tables, by a rule of your own that the claim does not cover", r.Degree, over, who, most, most)
	}
	return nil
}

// errNoSecret: whoever knows which contacts are kept sees through the thinning.
var errNoSecret = errors.New("thinning has no secret to draw by: draw one for every step, from a source that nobody else knows")

// thinnable are trainees whose contacts are thinned anew for every step. Until then their
// examples hold no contact.
type thinnable struct {
	trainees
	rule Rule
}

// thinnedAnew are the trainees to be thinned by a rule, if its promise holds.
func (t trainees) thinnedAnew(r Rule) (thinnable, error) {
	if err := r.Check(); err != nil {
		return thinnable{}, err
	}
	if err := r.promiseHolds(t.g); err != nil {
		return thinnable{}, err
	}
	t.kept = &Kept{Offsets: make([]int64, t.g.Persons()+1)}
	return thinnable{t, r}, nil
}

// Redraw keeps each contact with a chance, by a secret. More than the rule's share, which
// was paid for, is refused.
func (t thinnable) Redraw(secret [16]byte, keep float64) (data.People, error) {
	if keep != t.rule.Keep {
		return nil, fmt.Errorf("contacts are to be thinned to a share of %v, and were prepared for %v", keep, t.rule.Keep)
	}
	rule := t.rule
	rule.Secret = secret
	kept, err := rule.Of(t.g)
	if err != nil {
		return nil, err
	}
	drawn := t.trainees
	drawn.kept = &kept
	return drawn, nil
}

// roundedUp is more than logarithms of factorials up to 100,000 lose in floating point, so
// that no chance is told too small.
const roundedUp = 1 + 2e-9

// Appearances are the chances that k = 0, 1, ... examples beside its own hold a person
// under ThinnedRemoval: Binomial(Degree, Keep), over the draw of the key, rounded up. Delta
// is the mixture of the deltas at S = 1+k with these weights
// (docs/proofs/node-relations.md). Nil: the rule is another, or none that can be.
func (r Rule) Appearances() []float64 {
	if r.Relation != ThinnedRemoval || r.Check() != nil {
		return nil
	}
	p := make([]float64, r.Degree+1)
	if r.Keep == 1 {
		p[r.Degree] = 1
		return p
	}
	n := float64(r.Degree)
	whole, _ := math.Lgamma(n + 1)
	for k := range p {
		x := float64(k)
		chosen, _ := math.Lgamma(x + 1)
		left, _ := math.Lgamma(n - x + 1)
		p[k] = roundedUp * math.Exp(whole-chosen-left+x*math.Log(r.Keep)+(n-x)*math.Log1p(-r.Keep))
	}
	return p
}
