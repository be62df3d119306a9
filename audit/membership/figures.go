package membership

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
)

// Scores are what an attack gives to members and to others; larger speaks for a member.
type Scores struct{ Members, Others []float64 }

// Figures are how well scores tell members from others.
type Figures struct {
	Members    int             `json:"members"`
	NonMembers int             `json:"non_members"`
	AUC        *metrics.Figure `json:"auc"` // with DeLong's interval
	Rates      []Rate          `json:"rates"`
	Epsilon    Epsilon         `json:"epsilon"`
	ROC        []Place         `json:"roc"`
}

// Rate is the share of members found where at most a share of the others is taken for
// members.
type Rate struct {
	At event.Number `json:"at"` // allowed share of the others
	// FalsePositives is how many others that allows. 0: there are too few to see the rate.
	FalsePositives int          `json:"false_positives"`
	TruePositive   event.Number `json:"true_positive_rate"`
	Low            event.Number `json:"low"` // Clopper and Pearson's
	High           event.Number `json:"high"`
}

// Epsilon is what the rates of one threshold say of epsilon, from below. The threshold is
// chosen on one half of the scores, and judged on the other.
type Epsilon struct {
	AtLeast event.Number `json:"at_least"`
	// Most is what as many scores would give that tell all members from all others.
	Most          event.Number `json:"most"`
	Delta         event.Number `json:"delta"`
	Confidence    event.Number `json:"confidence"`
	Says          string       `json:"says"` // what is said of scores beyond the threshold: member or non-member
	TruePositive  event.Number `json:"true_positive_rate"`
	FalsePositive event.Number `json:"false_positive_rate"`
	Members       int          `json:"members"` // judged
	NonMembers    int          `json:"non_members"`
}

// Place is one of the curve's: the shares of others and of members above a score.
type Place struct {
	FalsePositive event.Number `json:"false_positive_rate"`
	TruePositive  event.Number `json:"true_positive_rate"`
}

// Level is what bounds are held at.
type Level struct {
	Delta      float64
	Confidence float64
}

// Check says what is wrong with a level.
func (l Level) Check() error {
	switch {
	case !(l.Delta >= 0 && l.Delta < 1):
		return fmt.Errorf("delta %v; allowed: from 0 to below 1, for example 1e-5", l.Delta)
	case !(l.Confidence > 0 && l.Confidence < 1):
		return fmt.Errorf("confidence %v; allowed: between 0 and 1, for example 0.95", l.Confidence)
	}
	return nil
}

// rates are the false positive rates that attacks are compared at.
var rates = []float64{0.1, 0.01, 0.001}

// ErrScores means that scores cannot be judged.
var ErrScores = errors.New("scores cannot be judged")

// Judge is how well scores tell members from others. The threshold of the epsilon is chosen
// on first and judged on second; everything else is of judged.
func Judge(judged, first, second Scores, l Level) (Figures, error) {
	if err := l.Check(); err != nil {
		return Figures{}, err
	}
	for _, s := range []Scores{judged, first, second} {
		if len(s.Members) == 0 || len(s.Others) == 0 {
			return Figures{}, fmt.Errorf("%w: there are %d members and %d others; allowed: at least one of both, and two where halves are taken", ErrScores, len(s.Members), len(s.Others))
		}
		for _, v := range slices.Concat(s.Members, s.Others) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return Figures{}, fmt.Errorf("%w: one of them is %v: a model has left the finite numbers, and has nothing to tell", ErrScores, v)
			}
		}
	}
	s := judged.sorted()
	f := Figures{Members: len(s.Members), NonMembers: len(s.Others), AUC: metrics.AUC(s.Members, s.Others), ROC: s.curve()}
	for _, at := range rates {
		f.Rates = append(f.Rates, s.rate(at, l.Confidence))
	}
	f.Epsilon = second.sorted().epsilon(first.sorted().chosen(l), l)
	return f, nil
}

// sorted has the scores from the largest to the smallest.
func (s Scores) sorted() Scores {
	out := Scores{slices.Clone(s.Members), slices.Clone(s.Others)}
	for _, v := range [][]float64{out.Members, out.Others} {
		slices.SortFunc(v, func(a, b float64) int {
			switch {
			case a > b:
				return -1
			case a < b:
				return 1
			}
			return 0
		})
	}
	return out
}

// above is how many of falling values are larger than a threshold.
func above(falling []float64, threshold float64) int {
	at, _ := slices.BinarySearchFunc(falling, threshold, func(v, t float64) int {
		if v > t {
			return -1
		}
		return 1
	})
	return at
}

// rate is that of the lowest threshold which at most a share of the others is above.
func (s Scores) rate(at, confidence float64) Rate {
	allowed := int(at*float64(len(s.Others)) + 1e-9)
	threshold := math.Inf(-1)
	if allowed < len(s.Others) {
		threshold = s.Others[allowed]
	}
	hits, n, level := above(s.Members, threshold), len(s.Members), (1-confidence)/2
	return Rate{
		At: event.Number(at), FalsePositives: allowed, TruePositive: share(hits, n),
		Low: event.Number(metrics.AtLeast(hits, n, level)), High: event.Number(metrics.AtMost(hits, n, level)),
	}
}

func share(hits, n int) event.Number { return event.Number(float64(hits) / float64(n)) }

// choice is a threshold, and on which side of it something is said.
type choice struct {
	threshold float64
	below     bool // of scores at or below it: they are said to be no members'
}

// chosen is the choice with the largest bound here.
func (s Scores) chosen(l Level) choice {
	best, most := choice{threshold: s.Others[0]}, math.Inf(-1)
	try := func(c choice) {
		if e := s.bound(c, l); e > most {
			best, most = c, e
		}
	}
	for k := 0; k < len(s.Others); k += 1 + k/4 {
		try(choice{threshold: s.Others[k]})
	}
	for k := 0; k < len(s.Members); k += 1 + k/4 {
		// k members lie below the k-th smallest, counted from 0.
		try(choice{threshold: math.Nextafter(s.Members[len(s.Members)-1-k], math.Inf(-1)), below: true})
	}
	return best
}

// answers are the right and the wrong ones of a choice: among members and others, or the
// other way round where it speaks of others.
func (s Scores) answers(c choice) (right, of, wrong, among int) {
	members, others := above(s.Members, c.threshold), above(s.Others, c.threshold)
	if c.below {
		return len(s.Others) - others, len(s.Others), len(s.Members) - members, len(s.Members)
	}
	return members, len(s.Members), others, len(s.Others)
}

// bound is ln((TPR - delta)/FPR), or the same of the negatives, by Clopper and Pearson's
// limits of both rates, each of which has half of what may go wrong; -Inf where the limits
// leave nothing.
func (s Scores) bound(c choice, l Level) float64 {
	right, of, wrong, among := s.answers(c)
	return atLeast(right, of, wrong, among, l)
}

func atLeast(right, of, wrong, among int, l Level) float64 {
	level := (1 - l.Confidence) / 2
	found := metrics.AtLeast(right, of, level) - l.Delta
	if found <= 0 {
		return math.Inf(-1)
	}
	return math.Log(found / metrics.AtMost(wrong, among, level))
}

func (s Scores) epsilon(c choice, l Level) Epsilon {
	right, of, wrong, among := s.answers(c)
	e := Epsilon{
		AtLeast: event.Number(max(0, s.bound(c, l))), Most: event.Number(max(0, atLeast(of, of, 0, among, l))),
		Delta: event.Number(l.Delta), Confidence: event.Number(l.Confidence), Says: "member",
		TruePositive: share(right, of), FalsePositive: share(wrong, among), Members: len(s.Members), NonMembers: len(s.Others),
	}
	if c.below {
		e.Says = "non-member"
	}
	return e
}

// curve is the ROC, thinned to what an axis of logarithms can show: from the first place
// with a false positive on, at most 40 places a decade.
func (s Scores) curve() []Place {
	var out []Place
	for k := 0; k <= len(s.Others); {
		threshold := math.Inf(-1)
		if k < len(s.Others) {
			threshold = s.Others[k]
		}
		out = append(out, Place{share(k, len(s.Others)), share(above(s.Members, threshold), len(s.Members))})
		if k == len(s.Others) {
			break
		}
		k = min(len(s.Others), max(k+1, int(float64(k)*1.06)))
	}
	return out
}
