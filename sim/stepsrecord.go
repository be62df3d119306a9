package sim

import (
	"encoding/json"
	"math"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
)

// StepsRecord is what the private steps of a round met and did (where not every round is
// recorded: of all rounds since the last record), over the participants that made them.
// Clip and step, and the way they moved, follow from sums with noise. The rest has seen
// none: it is known where noise is simulated, and no guarantee covers it. Of whole clients
// a step is the server's, one a round, and nothing but Made, Clip and Step is known.
type StepsRecord struct {
	Made int          `json:"made"` // steps from the first round on, of one participant
	Clip event.Number `json:"clip"` // after the round; the median over participants
	Step event.Number `json:"step"` // likewise, the step size
	// Clipped is the share of the round's examples whose gradients were longer than the
	// clip; null: no example was drawn, or nobody counts.
	Clipped *event.Number `json:"clipped"`
	// ClipUp and StepUp are the shares of the round's steps after which the clip, and the
	// step size, rose; null: it is not learned, or nobody counts.
	ClipUp *event.Number `json:"clip_up"`
	StepUp *event.Number `json:"step_up"`
	// ClipAgree and StepAgree are the shares of the round's steps that moved it the way in
	// which sums without noise would have; null: not learned, or not known.
	ClipAgree *event.Number `json:"clip_agree"`
	StepAgree *event.Number `json:"step_agree"`
	// Norms counts the round's examples by the norm of their gradients: bin i is from
	// NormEdge(i) to NormEdge(i+1), but the first and the last have no end; null: nobody
	// counts.
	Norms []int `json:"norms"`
}

// GobEncode writes the record as JSON: by itself gob takes a share of 0 for none.
func (r *StepsRecord) GobEncode() ([]byte, error) {
	type plain StepsRecord
	return json.Marshal((*plain)(r))
}

// GobDecode reads what GobEncode writes.
func (r *StepsRecord) GobDecode(b []byte) error {
	type plain StepsRecord
	return json.Unmarshal(b, (*plain)(r))
}

// NormBins is the number of a StepsRecord's bins of norms, half a decade each.
const NormBins = mech.NormBins

// NormEdge is where bin i of the norms begins.
func NormEdge(i int) float64 { return math.Pow(10, -12+float64(i)/2) }
