package adding_test

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// A protection: its name, words, the keys that it reads and not all protections do, what it
// cannot cover of a method, and how it is made.
func init() {
	fl.RegisterProtection(fl.ProtectionKind{
		Name: "signs", Words: "nothing that could be proved: a release has the update's signs alone",
		Keys: []string{"algorithm.clients_per_round", "algorithm.sampling", "algorithm.stop.patience", "algorithm.stop.return"},
		Check: func(c *config.Checker, run config.Run, o fl.Outline) {
			c.Require(o.Sends > 0, "privacy.protects", "is signs, but %s sends nothing: there is no update", run.Algorithm.Kind)
			c.Require(!o.Declares, "privacy.protects", "is signs, but releases declare more than a model, which has no sign")
			c.Require(run.Algorithm.Local.Batch == 0, "algorithm.local.batch", "is %d, but which batches are drawn is not settled; allowed: 0", run.Algorithm.Local.Batch)
		},
		New: func(s fl.Setup, o fl.Outline) (fl.Protection, error) {
			pass, err := model.NewPass(s.Run.Algorithm.Local, s.Run.Algorithm.Rounds)
			return &signs{Setup: s, outline: o, pass: pass}, err
		},
	})
}

// signs sends a step of public length in the direction of the update's signs (signSGD). It
// hides lengths, and proves nothing: its releases claim nothing.
type signs struct {
	fl.Setup
	outline fl.Outline
	pass    model.Pass
}

// bare is what a release is, for accountants.
var bare = event.Release{
	Unit: event.UnitClient, Relation: event.ReplaceOne, Claim: event.ClaimNone, Trust: event.TrustNobody,
	What: event.Unprotected{},
}

func (s *signs) Prepare(p *fl.Participant) error {
	p.Plan = fl.Plan{Weight: 1, Examples: p.Data.Len(), Batch: max(1, p.Data.Len()), Steps: s.Run.Algorithm.Local.Epochs, Epochs: s.Run.Algorithm.Local.Epochs}
	return nil
}

func (s *signs) Begin(*fl.State)                                        {}
func (s *signs) Announce(*fl.Broadcast) error                           { return nil }
func (s *signs) Gather(_ *fl.State, r fl.Releases) (fl.Releases, error) { return r, nil }
func (s *signs) Bounds() []fl.Bound                                     { return []fl.Bound{{To: s.Parameters, Most: fl.MostAnywhere}} }
func (s *signs) Price(*fl.Broadcast) (event.Release, bool, error)       { return bare, true, nil }
func (s *signs) Describe(*fl.Privacy)                                   {}
func (s *signs) PriceAhead(_ *fl.Participant, from int) (event.Release, int, error) {
	return bare, s.outline.Sends - from, nil
}

// Spend says that nothing is protected.
func (s *signs) Spend(*fl.Participant) (account.Guarantee, *account.Guarantee, error) {
	return account.Guarantee{
		Claim: bare.Claim, Unit: bare.Unit, Relation: bare.Relation, Trust: bare.Trust, Epsilon: math.Inf(1),
		NotCovered: []string{"everything: the signs are sent as they are"},
	}, nil, nil
}

func (s *signs) Guard() (fl.Guard, error) {
	l, err := s.Model.Learner()
	return &signGuard{signs: s, learner: l, pass: s.pass}, err
}

// signGuard is the protection with one worker's memory.
type signGuard struct {
	*signs
	learner model.Learner
	pass    model.Pass
}

// Open pays: a purse that allows no unprotected release has the participant decline.
func (g *signGuard) Open(b *fl.Broadcast, p *fl.Participant) (bool, error) {
	paid, err := p.Pay(b.Round, bare)
	return paid != nil, err
}

func (g *signGuard) Choose(b *fl.Broadcast, p *fl.Participant) (int, error) {
	_, best, err := model.Best(g.learner, g.Parameters, b.Hypotheses, p.Data)
	return best, err
}

func (g *signGuard) Train(b *fl.Broadcast, p *fl.Participant, theta, centre []float64, reg fl.Pull) error {
	g.pass.At(b.Round)
	g.pass.Pull = reg
	err := g.learner.Train(theta, p.Data, &g.pass)
	if err == nil {
		err = fl.NotFinite(theta, g.pass.StepSize)
	}
	if err != nil { // a failure would tell of the data: a public vector stands for it
		copy(theta, centre)
		p.Mishap = fmt.Errorf("round %d, participant %d: %w", b.Round+1, p.ID, err)
	}
	return nil
}

func (g *signGuard) Send(_ *fl.Broadcast, _ *fl.Participant, out, theta, centre []float64) (bool, error) {
	for i, v := range theta {
		out[i] = centre[i] + math.Copysign(g.pass.StepSize, v-centre[i])
	}
	return true, nil
}
