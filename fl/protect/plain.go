package protect

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/cluster"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// plain is what protections share, with the usual answers to what the round asks. Most add
// no noise in training: it is the release that they protect, if anything.
type plain struct {
	fl.Setup
	n       int
	cfg     config.Algorithm
	outline fl.Outline
	pass    model.Pass // what every worker's begins as
	family  rng.Family // of batches
}

func newPlain(s fl.Setup, o fl.Outline) (plain, error) {
	pass, err := model.NewPass(s.Run.Algorithm.Local, s.Run.Algorithm.Rounds)
	if err != nil {
		return plain{}, fmt.Errorf("algorithm.local: %w", err)
	}
	pass.Single = true
	return plain{
		Setup: s, n: s.Parameters, cfg: s.Run.Algorithm, outline: o, pass: pass,
		family: rng.NewFamily(s.Run.Seed, "batches"),
	}, nil
}

// Prepare counts a participant's steps.
func (q *plain) Prepare(p *fl.Participant) error {
	p.Plan = fl.Plan{Weight: 1, Batch: 1, Epochs: q.outline.Passes * q.cfg.Local.Epochs, StepSize: q.cfg.Local.Step, Drawn: event.Shuffle}
	switch {
	case q.outline.Moments > 0:
		settleSum(&p.Plan, p)
	case p.Data != nil && p.Data.Len() > 0: // whoever has none releases a fixed vector
		size := p.Data.Len()
		if limit := q.cfg.Local.Limit; limit > 0 && p.Data.Images != nil { // what begin draws
			size = min(size, limit)
		}
		settleBatches(&p.Plan, p, q.cfg, q.outline, size)
	}
	return nil
}

// settleBatches settles batches and steps for a public size.
func settleBatches(plan *fl.Plan, p *fl.Participant, a config.Algorithm, o fl.Outline, size int) {
	plan.Examples, plan.Batch = p.Data.Len(), size
	if a.Local.Batch > 0 {
		plan.Batch = min(a.Local.Batch, size)
	}
	if a.Weights == "counts" {
		plan.Weight = float64(p.Data.Len())
	}
	plan.Rate = float64(plan.Batch) / float64(size)
	each := size / plan.Batch
	if a.Local.Remainder == "keep" {
		each = (size + plan.Batch - 1) / plan.Batch
	}
	if steps := a.Local.Steps * o.Passes; steps > 0 { // a round meets an example at most so often
		plan.Epochs = (steps + each - 1) / each
		plan.Steps, plan.Local, plan.Pass = steps, steps, a.Local.Steps
		return
	}
	plan.Steps, plan.Local = each*plan.Epochs, each*plan.Epochs
	plan.Pass = plan.Steps / o.Passes
}

// Begin keeps nothing.
func (q *plain) Begin(*fl.State) {}

// Announce adds nothing.
func (q *plain) Announce(*fl.Broadcast) error { return nil }

// Gather changes nothing.
func (q *plain) Gather(_ *fl.State, r fl.Releases) (fl.Releases, error) { return r, nil }

// Bounds are those of any useful parameter.
func (q *plain) Bounds() []fl.Bound { return []fl.Bound{{To: q.released(), Most: fl.MostAnywhere}} }

// Price is the plan's alone: all rounds are priced at once.
func (q *plain) Price(*fl.Broadcast) (event.Release, bool, error) {
	return event.Release{}, false, nil
}

// Spend is what the participant's records have lost.
func (q *plain) Spend(p *fl.Participant) (account.Guarantee, *account.Guarantee, error) {
	return p.Plan.Spend(p.Paid)
}

// Describe adds nothing.
func (q *plain) Describe(*fl.Privacy) {}

// trainer is plain with one worker's memory.
type trainer struct {
	q       *plain
	learner model.Learner
	batches rng.Stream
	index   []int       // pictures drawn for a round
	some    data.Client // what they make up
	mine    *data.Client

	pass    model.Pass
	entropy *mech.Entropy // of equal batches; nil: the last one of an epoch may be smaller
	sampler mech.Sampler
}

// ready gives the trainer its memory. It must not move afterwards.
func (q *plain) ready(t *trainer) (err error) {
	t.q, t.pass = q, q.pass
	t.pass.Shuffle = &t.batches
	if q.cfg.Local.Remainder == "drop" || q.cfg.Local.Steps > 0 {
		t.entropy, t.pass.Sampler = mech.SystemEntropy(), &t.sampler
	}
	t.learner, err = q.Model.Learner()
	return err
}

// Learner is what the trainer trains with.
func (t *trainer) Learner() model.Learner { return t.learner }

// begin draws what the participant chooses by and trains on in a round: all it has, or a
// limited number of pictures.
func (t *trainer) begin(b *fl.Broadcast, p *fl.Participant) {
	t.mine = p.Data
	limit, all := t.q.cfg.Local.Limit, p.Data.Len()
	some := limit > 0 && limit < all && p.Data.Images != nil
	if some || (t.q.pass.Batch > 0 && t.q.pass.Batch < all) || t.entropy != nil {
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
	t.pass.At(b.Round)
	if err := t.descend(p, theta, reg); err != nil {
		copy(theta, centre)
		p.Mishap = fmt.Errorf("round %d, participant %d: local training failed: %w", b.Round+1, p.ID, err)
	}
	return nil
}

func (t *trainer) descend(p *fl.Participant, theta []float64, reg fl.Pull) error {
	t.pass.Pull = reg
	if t.q.outline.Continues {
		t.pass.Memory, t.pass.Begun = &p.Training, p.Steps
	}
	if t.entropy != nil {
		t.pass.Count = p.Plan.Pass
		if err := t.sampler.Open(event.Shuffle, p.Plan.Rate, p.Plan.Batch, t.entropy); err != nil {
			return err
		}
	}
	return t.learner.Train(theta, t.mine, &t.pass)
}

// finite puts a public vector in the place of one that left the finite numbers.
func (t *trainer) finite(b *fl.Broadcast, p *fl.Participant, theta, centre []float64) {
	if err := fl.NotFinite(theta, t.q.cfg.Local.Step); err != nil {
		p.Mishap = fmt.Errorf("round %d, participant %d: %w", b.Round+1, p.ID, err)
		copy(theta, centre)
	}
}

// bestOf is the model with the least loss or the fewest wrong answers, unpaid.
func bestOf(l model.Learner, s config.Selection, n int, models []float64, c *data.Client) (loss float64, chosen int, err error) {
	if s.Score != "error" {
		return model.Best(l, n, models, c)
	}
	loss = math.Inf(1)
	for j := 0; (j+1)*n <= len(models); j++ {
		_, wrong, err := l.Judge(models[j*n:(j+1)*n], c)
		if err != nil {
			return loss, chosen, err
		}
		if float64(wrong) < loss {
			loss, chosen = float64(wrong), j
		}
	}
	return loss, chosen, nil
}

// nearestToLast is the model nearest to the participant's own last release; before the
// first one it goes by the participant's number, which is public.
func nearestToLast(b *fl.Broadcast, p *fl.Participant, n int) int {
	return cluster.Nearest(p.Last, b.Hypotheses, p.ID%(len(b.Hypotheses)/n))
}
