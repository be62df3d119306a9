package protect

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// plain is what the protections share that add no noise in training: it is the release
// that they protect, if anything.
type plain struct {
	fl.Setup
	n       int
	cfg     config.Algorithm
	outline fl.Outline
	descent model.Descent
	family  rng.Family // of batches
}

func newPlain(s fl.Setup, o fl.Outline) (plain, error) {
	descent, err := model.NewDescent(s.Run.Algorithm.Local)
	if err != nil {
		return plain{}, fmt.Errorf("algorithm.local: %w", err)
	}
	return plain{
		Setup: s, n: s.Parameters, cfg: s.Run.Algorithm, outline: o, descent: descent,
		family: rng.NewFamily(s.Run.Seed, "batches"),
	}, nil
}

// Prepare counts a participant's steps.
func (q *plain) Prepare(p *fl.Participant) error {
	p.Plan = fl.Plan{Weight: 1, Epochs: q.outline.Passes * q.cfg.Local.Epochs, StepSize: q.cfg.Local.Step, Drawn: event.Shuffle}
	return settleBatches(&p.Plan, p, q.cfg, q.outline, p.Data.Len())
}

// settleBatches settles batches and steps for a public size: the last, smaller batch of
// an epoch is dropped.
func settleBatches(plan *fl.Plan, p *fl.Participant, a config.Algorithm, o fl.Outline, size int) error {
	if size < 1 {
		return fmt.Errorf("it has no examples")
	}
	plan.Examples, plan.Batch = p.Data.Len(), size
	if a.Local.Batch > 0 {
		plan.Batch = min(a.Local.Batch, size)
	}
	if a.Weights == "counts" {
		plan.Weight = float64(p.Data.Len())
	}
	plan.Rate = float64(plan.Batch) / float64(size)
	plan.Steps = size / plan.Batch * plan.Epochs
	plan.Pass = plan.Steps / o.Passes
	return nil
}

// Announce adds nothing.
func (q *plain) Announce(*fl.Broadcast) error { return nil }

// Gather changes nothing.
func (q *plain) Gather(_ *fl.State, r fl.Releases) (fl.Releases, error) { return r, nil }

// Bounds are those of any useful parameter.
func (q *plain) Bounds() []fl.Bound { return []fl.Bound{{To: q.n, Most: fl.MostAnywhere}} }

// trainer is plain with one worker's memory.
type trainer struct {
	q       *plain
	learner model.Learner
	batches rng.Stream
	index   []int       // pictures drawn for a round
	some    data.Client // what they make up
	mine    *data.Client

	entropy *mech.Entropy
	sampler mech.Sampler
	grad    []float64
}

func (q *plain) trainer() (trainer, error) {
	t := trainer{q: q, learner: q.Model.Learner()}
	if q.Run.Data.OfSilos() {
		t.entropy = mech.SystemEntropy()
	}
	return t, nil
}

// begin draws what the participant chooses by and trains on in a round: all it has, or a
// limited number of pictures.
func (t *trainer) begin(b *fl.Broadcast, p *fl.Participant) {
	t.mine = p.Data
	limit, all := t.q.cfg.Local.Limit, p.Data.Len()
	some := limit > 0 && limit < all && p.Data.Images != nil
	if some || (t.q.descent.Batch > 0 && t.q.descent.Batch < all) || t.entropy != nil {
		t.batches.Key(&t.q.family, b.Round, p.ID)
	}
	if t.entropy != nil {
		t.entropy.Reset(&t.batches)
	}
	if !some {
		return
	}
	t.index = append(t.index[:0], p.Data.Index...)
	t.batches.Shuffle(t.index)
	t.some = data.Client{Pictures: data.Pictures{Images: p.Data.Images, Index: t.index[:limit]}}
	t.mine = &t.some
}

// Choose is the model that fits the participant's examples best, or lies nearest to its
// own last release.
func (t *trainer) Choose(b *fl.Broadcast, p *fl.Participant) (int, error) {
	if t.q.cfg.Selection.Rule == "nearest" {
		return nearestToLast(b, p, t.q.n), nil
	}
	if p.Blank {
		return 0, nil
	}
	_, choice, err := bestOf(t.learner, t.q.cfg.Selection, t.q.n, b.Hypotheses, t.mine)
	if err != nil {
		p.Mishap = fmt.Errorf("round %d, participant %d: choosing a model failed: %w", b.Round+1, p.ID, err)
		return 0, nil
	}
	return choice, nil
}

// Train is plain descent.
func (t *trainer) Train(b *fl.Broadcast, p *fl.Participant, theta, centre []float64, reg fl.Pull) error {
	if p.Blank || p.Mishap != nil {
		copy(theta, centre)
		return nil
	}
	if err := t.descend(p, theta, reg); err != nil {
		copy(theta, centre)
		p.Mishap = fmt.Errorf("round %d, participant %d: local training failed: %w", b.Round+1, p.ID, err)
	}
	return nil
}

func (t *trainer) descend(p *fl.Participant, theta []float64, reg fl.Pull) error {
	if reg.Offset == nil && !t.q.Run.Data.OfSilos() {
		return t.learner.Train(t.q.descent, theta, t.mine, &t.batches)
	}
	plan := &p.Plan
	if err := t.sampler.Open(plan.Drawn, plan.Rate, plan.Batch, t.entropy); err != nil {
		return err
	}
	if t.grad == nil {
		t.grad = make([]float64, t.q.n, max(t.q.n, 32))
	}
	learner := t.learner.(model.SiloLearner)
	for range plan.Pass {
		batch, err := t.sampler.Batch(p.Data.Len())
		if err != nil {
			return err
		}
		if err := learner.Gradient(t.grad, theta, t.mine, batch, model.SiloStep{Divisor: plan.Batch}); err != nil {
			return err
		}
		if reg.Offset != nil {
			for i, v := range theta {
				t.grad[i] += reg.Slope*v + reg.Offset[i]
			}
		}
		for i, g := range t.grad {
			theta[i] -= plan.StepSize * g
		}
	}
	return nil
}

// finite puts a public vector in the place of one that left the finite numbers.
func (t *trainer) finite(b *fl.Broadcast, p *fl.Participant, theta, centre []float64) {
	if err := fl.NotFinite(theta, t.q.cfg.Local.Step); err != nil {
		p.Mishap = fmt.Errorf("round %d, participant %d: %w", b.Round+1, p.ID, err)
		copy(theta, centre)
	}
}
