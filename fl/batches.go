package fl

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// Batches compares steps on batches of persons, as the thesis's theorem has them, with steps
// on everybody for the same promise: a person is in several examples, and a batch that may
// hold all of them needs nearly the noise of everybody, on far fewer.
type Batches struct {
	Batch    int          `json:"batch"`
	Examples int          `json:"examples"` // that batches are drawn from
	Steps    int          `json:"steps"`
	Noise    event.Number `json:"noise"` // of a step, over the clip
	// MeanNoise is the deviation of the noise in the mean gradient of all the run's steps,
	// times the examples, over the clip: what training has to see through.
	MeanNoise event.Number `json:"mean_gradient_noise"`
	// FullNoise and FullMeanNoise are those of as many as FullSteps on everybody. The mean's
	// does not depend on how many there are.
	FullSteps     int          `json:"full_steps"`
	FullNoise     event.Number `json:"full_noise"`
	FullMeanNoise event.Number `json:"full_mean_gradient_noise"`
	// AuthorsCode is what the formula of the authors' program makes of the same steps.
	AuthorsCode event.Statement `json:"authors_code"`
}

// fullSteps is how many steps on everybody a run of people usually has.
const fullSteps = 10

// BatchesOf are of the participant with the most noise in its mean gradient; nil: everybody's
// steps are on all its examples, or nothing was spent.
func BatchesOf(participants []Participant, spends []account.Guarantee) (*Batches, error) {
	var worst *Batches
	for i := range participants {
		p := &participants[i]
		if p.Plan.Nodes == 0 || p.Plan.Drawn == event.FullBatch || p.Paid.Rounds == 0 || !p.Plan.Private() {
			continue
		}
		b, err := p.Plan.batches(p.Paid, spends[i])
		if err != nil {
			return nil, fmt.Errorf("batches beside steps on everybody: %w", err)
		}
		if worst == nil || b.MeanNoise > worst.MeanNoise {
			worst = b
		}
	}
	return worst, nil
}

func (p *Plan) batches(paid Paid, spent account.Guarantee) (*Batches, error) {
	made := p.Training(paid.Rounds, 0, false)
	b := &Batches{Batch: p.Batch, Examples: p.Examples, Steps: int(made.Steps), Noise: event.Number(p.Noise), FullSteps: fullSteps}
	b.MeanNoise = event.Number(p.Noise * float64(p.Examples) / (float64(p.Batch) * math.Sqrt(float64(made.Steps))))
	full := made
	full.Sampling, full.Batch, full.Examples, full.Steps = event.FullBatch, 0, 0, fullSteps
	full, _, err := full.WithNoiseFor(account.MethodRDP, spent.Epsilon, spent.Delta)
	if err != nil {
		return nil, err
	}
	b.FullNoise, b.FullMeanNoise = event.Number(full.Noise), event.Number(full.Noise/math.Sqrt(fullSteps))
	code := event.Release{
		Unit: p.Terms.Unit, Relation: p.Terms.Relation, Claim: event.ClaimHeuristic, Trust: p.Trust,
		What: event.Repeated{Times: made.Steps, Of: event.NodeGaussian{
			Nodes: made.Examples, Occurrences: made.Nodes, Batch: made.Batch, Noise: made.Noise, Formula: event.AuthorsCode,
		}},
	}
	g, err := account.Spend(code, account.MethodRDP, spent.Delta)
	if err != nil {
		return nil, err
	}
	g.Sampling = spent.Sampling
	b.AuthorsCode = g.Statement()
	return b, nil
}
