package sim

import (
	"math"

	"github.com/coterie-fl/coterie/dp/event"
)

// StepsRecord is what the private steps of a round met and did, over the participants
// that made them. The model has seen noise; these figures have not, but for the clip and
// the step: they are known in simulation only, and no guarantee covers them.
type StepsRecord struct {
	Made int          `json:"made"` // steps from the first round on, of one participant
	Clip event.Number `json:"clip"` // after the round; the median over participants
	Step event.Number `json:"step"` // likewise, the step size
	// Clipped is the share of the round's examples whose gradients were longer than the
	// clip; null: no example was drawn.
	Clipped *event.Number `json:"clipped"`
	// ClipUp and StepUp are the shares of the round's steps after which the clip, and the
	// step size, rose; null: it is not learned.
	ClipUp *event.Number `json:"clip_up"`
	StepUp *event.Number `json:"step_up"`
	// ClipAgree and StepAgree are the shares of the round's steps that moved it the way in
	// which sums without noise would have; null: not learned, or not known.
	ClipAgree *event.Number `json:"clip_agree"`
	StepAgree *event.Number `json:"step_agree"`
	// Norms counts the round's examples by the norm of their gradients: bin i is from
	// NormEdge(i) to NormEdge(i+1), but the first and the last have no end.
	Norms []int `json:"norms"`
}

// NormBins is the number of a StepsRecord's bins of norms, half a decade each.
const NormBins = 37

// NormEdge is where bin i of the norms begins.
func NormEdge(i int) float64 { return math.Pow(10, -12+float64(i)/2) }
