package membership

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/audit/membership"
	"github.com/coterie-fl/coterie/repro/lab"
)

// sentence is one of the text with the figure that decides on it. Intervals are of the rows
// that one model was attacked with, by DeLong; what another training would bring is not in
// them, and notes say so.
type sentence struct {
	label, metric, sentence, note, why string
	value                              lab.Spread
	holds                              bool
}

const oneModel = "; DeLong's interval of rows, areas taken as independent, which makes it wide; one model: other trainings are not in it"

// sentences are those on the curve over sigma, on where attacks overlap, and on what they
// cost.
func (f *figures) sentences() []sentence {
	c := f.curve()
	passes, shadows := f.passes()
	out := []sentence{
		{
			"best sigma less the better end", "difference of AUC", "figure 4.2: a prominent peak at the optimal sigma", fmt.Sprintf("agrees: the whole 95 %% interval above %v; best at sigma %v", leastGain, f.size.sigmas[c.top]) + oneModel,
			"We believe that the peak is there and low: a neighbour far away has a loss that hardly depends on the row, so that a large sigma comes back to the loss alone. Tested by the curve, whose right end lies at the loss's own AUC.", c.height, c.height.Low > leastGain,
		},
		{
			"step the wrong way, whose interval reaches highest", "difference of AUC", "figure 4.2: a single peak", fmt.Sprintf("agrees: the whole 95 %% interval below %.3f, half of the peak's height, which a second peak would have", c.height.Middle/2) + oneModel,
			"We believe that so few rows cannot tell a small second peak from none. Tested by the steps themselves.", c.wrong, c.wrong.High < c.height.Middle/2,
		},
		{
			fmt.Sprintf("best of %d sigmas less where a binary search ends", len(f.size.sigmas)), "difference of AUC", "section 4.4: this optimal value can be found with a binary search", fmt.Sprintf("agrees: the whole 95 %% interval below %.3f, half of the peak's height; it ends at sigma %v", c.height.Middle/2, f.size.sigmas[c.found]) + oneModel,
			noReason, c.missed, c.missed.High < c.height.Middle/2,
		},
		{
			"passes over a row, shadows over noisy neighbours", "ratio", "section 4.6: only using the model in inference mode reduces the time and cost", fmt.Sprintf("counted, not timed: %.1f against %.1f for every row, a step of training as three passes; agrees above 1", shadows, passes),
			noReason, lab.Exactly(shadows / passes), shadows > passes,
		},
	}
	if at, ok := f.overlapping(); ok {
		out = append(out, sentence{
			fmt.Sprintf("distance of both attacks, %v of the others less %v", manyShare, lowShares[0]), "difference of |ln(share of members found)|", "section 4.5, figure 4.4: strong consistency, especially for false positive rates below 0.01",
			"agrees: the whole 95 % interval above 0; one model: other trainings are not in it", whyNoNearer(at), at, at.Low > 0,
		})
	}
	return out
}

// whyNoNearer is what we believe where two attacks are no nearer to each other at low rates.
func whyNoNearer(distance lab.Spread) string {
	if distance.High < 0 {
		return "We believe that they are farther apart there, for the reason of the rows at low rates. Tested by this interval, which is below 0 as a whole."
	}
	return "We believe that both attacks are about as far apart everywhere: few members are found at low rates, and intervals are wide there. Tested by the rows at each rate."
}

// leastGain is the least difference of areas that counts.
const leastGain = 0.01

// curve is what the areas over sigma look like.
type curve struct {
	top, found    int        // places of the best sigma, and of that where a binary search ends
	height        lab.Spread // of the best above the better end
	wrong, missed lab.Spread // the step the wrong way whose interval reaches highest; the best above what was found
}

func (f *figures) curve() (c curve) {
	areas := lab.Pick(f.sigmas, func(one cell) float64 {
		auc, _ := one.auc(membership.Noisy)
		return auc.Middle
	})
	at := func(i int) lab.Spread {
		auc, _ := f.sigmas[i].auc(membership.Noisy)
		return auc
	}
	last := len(areas) - 1
	for i := range areas {
		if areas[i] > areas[c.top] {
			c.top = i
		}
	}
	end := 0
	if areas[last] > areas[0] {
		end = last
	}
	c.height = between(at, c.top, end)
	c.wrong = lab.Exactly(math.Inf(-1))
	for i := range last {
		from, to := i+1, i // before the peak the area must not fall
		if i >= c.top {
			from, to = i, i+1
		}
		if step := between(at, to, from); step.High > c.wrong.High {
			c.wrong = step
		}
	}
	low, high := 0, last
	for low < high { // where the next one is better, the peak is to the right
		if middle := (low + high) / 2; areas[middle+1] > areas[middle] {
			low = middle + 1
		} else {
			high = middle
		}
	}
	c.found = low
	c.missed = between(at, c.top, c.found)
	return c
}

// between is how much larger one area is than another; nothing where they are the same.
func between(at func(i int) lab.Spread, more, less int) lab.Spread {
	if more == less {
		return lab.Spread{}
	}
	return apart(at(more), at(less))
}

// passes are how often a model goes over a row for an attack: once for every neighbour, and
// once for every shadow, which is trained before, on a tenth of the members each.
func (f *figures) passes() (noisy, shadows float64) {
	const forthAndBack = 3 // a step of training, in passes
	noisy = float64(f.size.neighbours)
	all := float64(f.last().Found.Members + f.last().Found.NonMembers)
	trained := float64(f.last().Found.Members) * float64(f.size.epochs) // all shadows together
	return noisy, float64(f.size.shadows) + forthAndBack*trained/max(1, all)
}

// manyShare is where many of the others are taken for members.
const manyShare = 0.1

// overlapping is how much further apart the two attacks are where many of the others are taken
// for members than where few are.
func (f *figures) overlapping() (lab.Spread, bool) {
	many, ok := f.overlap(manyShare)
	few, too := f.overlap(lowShares[0])
	return apart(distance(many), distance(few)), ok && too
}

// distance is a difference without its sign.
func distance(s lab.Spread) lab.Spread {
	if s.Middle < 0 {
		return lab.Spread{Middle: -s.Middle, Low: -s.High, High: -s.Low}
	}
	return s
}
