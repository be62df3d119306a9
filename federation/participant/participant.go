// Package participant is one member of a federation: it asks for work, holds what it is
// asked against its policy and its ledger, trains, and sends what was paid for.
package participant

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/evaluate"
	"github.com/coterie-fl/coterie/internal/compute"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

// Participant is one member of a federation: it dials out, asks for work, pays for
// every release before it draws noise, and keeps everything else to itself.
type Participant struct {
	o       Options
	session *session
	report  Report
}

// Options are a participant's own settings and possessions.
type Options struct {
	Client     wire.FederationClient
	Name       string
	Federation string
	Signer     ed25519.PublicKey // verifies the server's receipts
	Ledger     Ledger
	Policy     plan.Policy
	// Half builds what answers a round, once the plan is known and allowed. The run is
	// the plan's; private differs from it in the seed, which the server must not know.
	Half func(ctx context.Context, asked plan.Plan, run, private config.Run, index int) (*Half, error)
	// Memory of a run's plan.
	Memory func(run string, plan ledger.Hash) (Memory, error)
	// AnswerAfter is how long after being asked an answer is sent, at the earliest: a
	// public time, so that how long training takes does not tell of the data.
	AnswerAfter time.Duration
	// Seeded allows plans whose noise everybody can repeat: for tests of the program.
	Seeded bool
	// Renew is called between rounds; it may replace the certificate. Nil: never.
	Renew func(context.Context) error
	// Successions are those of the server's key for receipts, by which Signer came to be or
	// will be succeeded. They are asked for before a receipt is looked at. Nil: none.
	Successions func(context.Context) ([]ledger.SignedSuccession, error)
	Log         *slog.Logger
}

// Report is what became of a participant's part in a run.
type Report struct {
	Run         string `json:"run_id"`
	Participant string `json:"participant"`
	Index       int    `json:"index"`
	PlanSHA256  string `json:"plan_sha256"`
	Rounds      int    `json:"rounds"`   // that the run made
	Released    int    `json:"released"` // accepted by the server, in this process
	Late        int    `json:"late"`     // paid for, but the round was over
	Declined    int    `json:"declined"`
	// Blank counts releases in which training failed: they are noise around a fixed
	// vector. The server does not know it.
	Blank       int    `json:"blank"`
	Stopped     string `json:"stopped"`
	ModelSHA256 string `json:"model_sha256"`
	// Enforcement is about a trainer, if there is one; NotCovered, too, and about what this
	// participant does otherwise.
	Enforcement ledger.Enforcement `json:"enforcement"`
	NotCovered  []string           `json:"not_covered"`
	Device      *compute.Used      `json:"device"` // where networks were computed; null: the participant's file asks for none

	// Local are this participant's own figures, of the model that it uses on its own
	// held-out examples. Null: it holds none out. They are never sent.
	Local *evaluate.Local `json:"local"`

	// Models are the run's, as safetensors; Personal is the participant's own, if the
	// method leaves it one. Its features must then be scaled, (x - Centre)/Scale, if
	// the participant paid for moments of its own.
	Models        []byte    `json:"-"`
	Personal      []float64 `json:"-"`
	Centre, Scale []float64 `json:"-"`
	trained       trained
}

// session is one run, as the participant has understood it.
type session struct {
	plan  plan.Plan
	run   config.Run
	sum   [32]byte
	index int
	half  *Half
	// evaluation is the round after the last one; nil: the plan has none.
	evaluation *evaluate.Evaluation
	memory     Memory
	worker     fl.Worker
	first      fl.Participant // as before the first round
	out        []float64
	// began is the state before the first round: broadcasts must have its lengths.
	began      *fl.State
	memorySent int  // values that the first broadcast has besides the hypotheses
	parameters int  // of one model
	settled    int  // no earlier round's release waits for its acknowledgement
	blank      bool // the round's release says little or nothing of the data
	// over is why this participant releases no more, if it has released before: it has
	// paid for the models and waits for them.
	over error
}

// New prepares to take part.
func New(o Options) *Participant { return &Participant{o: o} }

// Run takes part until the run has ended, or the policy or the budget ends it: then
// the error wraps fl.ErrRefused. A server that cannot be reached is tried for ever.
func (p *Participant) Run(ctx context.Context) (Report, error) {
	defer p.close()
	for most := firstWait; ; most = min(2*most, mostWait) {
		if err := p.join(ctx); err != nil {
			return p.report, err
		}
		err := p.work(ctx)
		if transfer.ReasonOf(err) != transfer.ReasonStale {
			return p.report, err
		}
		p.close()
		pause := most/2 + rand.N(most/2) // a server that has another plan at every turn is in no hurry
		p.o.Log.Info("the server has another plan now; joining again", "wait", pause.Round(time.Millisecond).String())
		if err := transfer.Wait(ctx, nil, pause); err != nil {
			return p.report, err
		}
	}
}

func (p *Participant) close() {
	if p.session != nil && p.session.half.Close != nil {
		if err := p.session.half.Close(); err != nil {
			p.o.Log.Warn("the trainer, or the device, did not end well", "error", err)
		}
	}
	p.session = nil
}

// join asks for the plan, checks it against ledger and policy, and prepares the
// participant's half of it.
func (p *Participant) join(ctx context.Context) error {
	reply, err := Retry(ctx, p.o.Log, "join", func(ctx context.Context) (*wire.JoinReply, error) {
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		return p.o.Client.Join(ctx, &wire.JoinRequest{})
	})
	if err != nil {
		return err
	}
	if err := p.reconcile(ctx, reply.GetReceipt()); err != nil {
		return err
	}
	asked, run, err := plan.Parse(reply.GetPlan())
	if err != nil {
		return fmt.Errorf("%w: %w", fl.ErrRefused, err)
	}
	canonical, sum, err := asked.Encode()
	if err != nil {
		return err
	}
	if !bytes.Equal(canonical, reply.GetPlan()) {
		return errors.New("the plan is not in its one spelling: the server is of another version")
	}
	p.report = Report{
		Run: asked.Run, Participant: p.o.Name, Index: int(reply.GetIndex()), PlanSHA256: fmt.Sprintf("%x", sum),
		Released: p.report.Released, Late: p.report.Late, Declined: p.report.Declined, Blank: p.report.Blank,
	}
	s := &session{plan: asked, run: run, sum: sum, index: int(reply.GetIndex())}
	if err := p.agree(s); err != nil {
		p.decline(ctx, s, 0, true, "policy")
		return err
	}
	if err := p.prepare(ctx, s); err != nil {
		if errors.Is(err, fl.ErrRefused) {
			p.decline(ctx, s, 0, true, "policy")
		}
		return err
	}
	p.session = s
	if s.over != nil && !p.repeatsAny(s) { // a server that was restored may want what it had
		p.decline(ctx, s, 0, true, "budget")
	}
	p.report.Enforcement, p.report.NotCovered, p.report.Device = s.half.Enforcement, s.notCovered(), s.half.Device
	if d := s.half.Device; d != nil && d.Name == "" {
		p.o.Log.Warn("networks are computed on the processor", "device", d.Asked, "reason", d.Why)
	} else if d != nil {
		p.o.Log.Info("networks are computed on a device", "device", d)
	}
	for _, what := range p.report.NotCovered {
		p.o.Log.Warn("not covered by this participant's privacy claims", "what", what)
	}
	p.o.Log.Info("joined", "run", asked.Run, "index", s.index, "plan", fmt.Sprintf("%.8x", sum), "method", run.Algorithm.Kind, "rounds", run.Algorithm.Rounds)
	return nil
}

// notCovered is what this participant's claims leave out, beyond what the plan says.
func (s *session) notCovered() []string {
	list := slices.Concat(s.half.NotCovered, s.half.Uncovered)
	protects := s.run.Privacy.Protects
	if s.half.Algorithm.Outline().Personal && (protects == "update" || protects == "client") {
		list = append(list, fl.UncoveredOwnModels)
	}
	if protects == "update" && s.run.Algorithm.Mode != "sound" {
		list = append(list, "declining: in paper mode what a release costs at a distance follows from the update's own length, and so may whether the ledger pays for it")
	}
	if s.half.Algorithm.ReleaseLength() > 0 {
		list = append(list, "time: how long training takes, as far as it passes answer_seconds")
	}
	return list
}

// reconcile holds the ledger against the last receipt that the server has: an old
// copy of the ledger must not spend again what was spent.
func (p *Participant) reconcile(ctx context.Context, receipt []byte) error {
	var last *ledger.SignedReceipt
	if len(receipt) > 0 {
		r, err := ledger.ParseSignedReceipt(receipt)
		if err != nil {
			return fmt.Errorf("the server's last receipt: %w", err)
		}
		last = &r
	}
	if err := p.succeed(ctx); err != nil {
		return err
	}
	m := ledger.Membership{Federation: p.o.Federation, Participant: p.o.Name, Key: ledger.Key(p.o.Signer)}
	return p.o.Ledger.Reconcile(m, last)
}

// succeed has the ledger record the server's new keys for receipts, if there are some.
func (p *Participant) succeed(ctx context.Context) error {
	if p.o.Successions == nil {
		return nil
	}
	all, err := p.o.Successions(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Old == ledger.Key(p.o.Signer) {
			p.o.Signer = s.New[:]
		}
	}
	return p.o.Ledger.Succeed(all...)
}

// agree holds the plan against the policy.
func (p *Participant) agree(s *session) error {
	if s.plan.Federation != p.o.Federation {
		return fmt.Errorf("%w: the plan is for federation %q, this participant belongs to %q", fl.ErrRefused, s.plan.Federation, p.o.Federation)
	}
	if s.index < 0 || s.index >= s.plan.Participants {
		return fmt.Errorf("the server gives this participant place %d among %d", s.index, s.plan.Participants)
	}
	if plan.Seeded(s.run) && !p.o.Seeded {
		return fmt.Errorf("%w: the plan's noise follows from its seed, so the server could subtract it; only --unsafe-seeded-noise allows that", fl.ErrRefused)
	}
	if after, deadline := p.o.AnswerAfter.Seconds(), s.plan.DeadlineSeconds; after > 0 && after >= deadline {
		return fmt.Errorf("%w: answer_seconds is %v, but the plan's rounds end after %v: no answer would come in time", fl.ErrRefused, after, deadline)
	}
	// What was released in a run, and what is remembered of it, belongs to one plan.
	if other, found := p.o.Ledger.Another(s.plan.Federation, s.plan.Run, s.sum); found {
		return fmt.Errorf("%w: the ledger has releases of run %s under the plan %.16s, and the server says that its plan is %.16s; another plan is another run, which the server begins with --new", fl.ErrRefused, s.plan.Run, other, ledger.Hash(s.sum))
	}
	m, err := model.Of(s.run, s.plan.Shape)
	if err != nil {
		return fmt.Errorf("%w: the plan's model cannot be built: %w", fl.ErrRefused, err)
	}
	return p.o.Policy.Allows(s.plan, s.run, m)
}

// prepare builds the half and settles what a release would cost.
func (p *Participant) prepare(ctx context.Context, s *session) error {
	var err error
	if s.memory, err = p.o.Memory(s.plan.Run, s.sum); err != nil {
		return err
	}
	private := s.run
	if !plan.Seeded(s.run) {
		if private.Seed, err = s.memory.Seed(); err != nil {
			return err
		}
	}
	if s.half, err = p.o.Half(ctx, s.plan, s.run, private, s.index); err != nil {
		return err
	}
	a := s.half.Algorithm
	s.out, s.began, s.parameters = make([]float64, a.ReleaseLength()), a.Start(), s.half.Parameters
	told, err := a.Broadcast(a.Start())
	if err != nil {
		return err
	}
	s.memorySent = len(told.Memory)
	s.first = fl.Participant{ID: s.index, Name: s.half.Name, Data: s.half.Data, Uncovered: s.half.Uncovered}
	if err := a.Prepare(&s.first); err != nil {
		return err
	}
	if s.half.Learner != nil && s.half.Data != nil && s.run.Privacy.Protects == "example" {
		if err := model.Unreadable(s.half.Learner, s.half.Data); err != nil { // for the owner alone
			p.o.Log.Warn("some examples are nothing that the plan's model can read: they count for nothing, and nobody else is told", "first", err)
		}
	}
	if s.evaluation, err = evaluate.New(private, s.plan.Shape, a); err != nil {
		return fmt.Errorf("%w: the plan's evaluation has no price: %w", fl.ErrRefused, err)
	}
	if err := p.fits(s); err != nil && !p.retire(s, err) {
		return err
	}
	p.explainEvaluation(s)
	return nil
}

// errSpent means that the participant's own budget allows no further release. A server
// that breaks its plan is another matter: from that one nothing is waited for.
var errSpent = fmt.Errorf("%w: the budget allows no further release", fl.ErrRefused)

// retire makes a participant that may release no more wait for the models, if it has
// released in this run before.
func (p *Participant) retire(s *session, err error) bool {
	if !errors.Is(err, errSpent) || p.nextRound(s) == 0 {
		return false
	}
	s.over = err
	p.o.Log.Warn("no further release; waiting for the end of the run, to fetch the models that were paid for", "reason", err)
	return true
}

// owes says whether something that is paid for may still have to be sent: then the
// budget for a further release is no reason to stay away.
func (p *Participant) owes(s *session) bool {
	for r := range s.allRounds() {
		e, ok := p.o.Ledger.Entry(s.slot(r))
		if ok && (e.Status == ledger.Stored || e.Status == ledger.Reserved) {
			return true
		}
	}
	return false
}

// Ledger is what a participant needs of its privacy ledger; *ledger.Ledger is one.
type Ledger interface {
	Reconcile(ledger.Membership, *ledger.SignedReceipt) error
	Succeed(...ledger.SignedSuccession) error
	Entry(ledger.Slot) (ledger.Entry, bool)
	Another(federation, run string, plan ledger.Hash) (ledger.Hash, bool)
	Check(...event.Release) error
	Reserve(ledger.Charge) error
	Store(ledger.Slot, []byte) error
	Load(ledger.Slot) ([]byte, error)
	Draft(ledger.Slot) (ledger.Receipt, error)
	Commit(ledger.Slot, ledger.SignedReceipt) error
	Abandon(ledger.Slot, string) error
	Keeps(ledger.Slot) bool
	Forget(federation, run string)
}
