package fl

import (
	"errors"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// Algorithm is a method under a protection: what a round does at both ends. Whoever
// carries the messages calls Broadcast and Aggregate at the server and Respond at the
// participants.
type Algorithm struct {
	method     Method
	protection Protection
	outline    Outline
	setup      Setup
	length     int  // of a release
	summed     bool // the protection leaves a round's releases as they come
}

// DrawSeed is what a run's own draws follow from: everything but the data, which runs that
// share a target have in common. Two of these with the same noise could be subtracted from
// each other, and their prices would not add up.
func DrawSeed(run config.Run) uint64 { return run.Seed + uint64(run.Privacy.Run)<<32 }

// New builds the run file's method under its protection, for so many participants.
func New(run config.Run, m model.Model, participants int) (*Algorithm, error) {
	if participants < 1 {
		return nil, fmt.Errorf("%d participants; at least one is needed", participants)
	}
	kind, err := methodOf(run)
	if err != nil {
		return nil, err
	}
	protects, err := protectionOf(run)
	if err != nil {
		return nil, err
	}
	run.Seed = DrawSeed(run)
	a := &Algorithm{setup: Setup{Run: run, Model: m, Parameters: m.Parameters(), Participants: participants}, summed: protects.Sums}
	if a.method, err = kind.New(a.setup); err != nil {
		return nil, err
	}
	a.outline = a.method.Outline()
	if a.protection, err = protects.New(a.setup, a.outline); err != nil {
		return nil, err
	}
	if a.outline.Sends > 0 {
		a.length = a.setup.Parameters
		if d := a.outline.Moments; d > 0 {
			a.length = mech.TriangleLength(d)
		}
		if a.outline.Declares {
			a.length += DeclarationLength
		}
	}
	return a, nil
}

// Model is what the algorithm trains.
func (a *Algorithm) Model() model.Model { return a.setup.Model }

// Outline is the method's.
func (a *Algorithm) Outline() Outline { return a.outline }

// OwnModels says that everybody ends with a model of its own, kept or taken from the
// broadcast after the last round: then the run returns its models as that broadcast has
// them, on its lattice if it has one, so that whoever takes one has the same bytes.
func (a *Algorithm) OwnModels() bool {
	return a.outline.Personal || a.setup.Run.Judge.By == "own"
}

// Method is the one that is used.
func (a *Algorithm) Method() Method { return a.method }

// Protection is the one that is used.
func (a *Algorithm) Protection() Protection { return a.protection }

// Start is the server's state before the first round.
func (a *Algorithm) Start() *State {
	st := new(State)
	a.method.Begin(st)
	a.protection.Begin(st)
	return st
}

// ReleaseLength is how many values a release has; 0 if nothing is ever sent.
func (a *Algorithm) ReleaseLength() int { return a.length }

// Prepare settles what follows from a participant's own size and target. It is called
// before the participant's first round. A model that it holds already is kept.
func (a *Algorithm) Prepare(p *Participant) error {
	if err := a.protection.Prepare(p); err != nil {
		return fmt.Errorf("participant %d %s: %w", p.ID, p.Name, err)
	}
	if !a.outline.Personal {
		return nil
	}
	n := a.setup.Parameters
	if p.Personal == nil {
		p.Personal = make([]float64, n)
		start := rng.NewFamily(a.setup.Run.Seed, "initial hypotheses")
		a.setup.Model.Initialise(p.Personal, start.Stream(0, 0))
	}
	if len(p.Personal) != n {
		return fmt.Errorf("participant %d %s: its own model has %d values, not %d: it belongs to another run", p.ID, p.Name, len(p.Personal), n)
	}
	return nil
}

// Broadcast is what every participant of the round is sent.
func (a *Algorithm) Broadcast(st *State) (Broadcast, error) {
	b := Broadcast{Round: st.Round, Hypotheses: st.Hypotheses}
	a.method.Tell(st, &b)
	if err := a.protection.Announce(&b); err != nil {
		return Broadcast{}, fmt.Errorf("round %d: %w", st.Round+1, err)
	}
	return b, nil
}

// Respond is the participant's half: it writes its release to out, or reports that it
// declines. What is in out, and whether it declines, depends on private data through
// paid mechanisms alone; training that leaves the finite numbers ends in a fixed
// release and a Mishap.
func (a *Algorithm) Respond(w *Worker, b Broadcast, p *Participant, out []float64) (released bool, err error) {
	if w.owner != a {
		if err := a.ready(w); err != nil {
			return false, err
		}
	}
	p.Mishap = nil
	w.sent = b
	open, err := w.guard.Open(&w.sent, p)
	if err == nil && open {
		released, err = a.method.Respond(w.guard, w, &w.sent, p, out)
	}
	if err != nil {
		return false, fmt.Errorf("round %d, participant %d %s: %w", b.Round+1, p.ID, p.Name, err)
	}
	return released, nil
}

// Pay reserves a release if there is a purse. What it returns is drawn from; it is
// nil if the release may not be made.
func (p *Participant) Pay(round int, r event.Release) (*mech.Paid, error) {
	if p.Purse != nil {
		err := p.Purse.Reserve(round, r)
		if errors.Is(err, ErrRefused) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return mech.NewPaid(r)
}

// ready gives a worker its memory.
func (a *Algorithm) ready(w *Worker) (err error) {
	if w.guard, err = a.protection.Guard(); err != nil {
		return err
	}
	w.owner = a
	return nil
}

// Learner is the one that a worker's guard trains with, so that whoever judges between
// rounds needs no memory of its own; one of the worker's own if the guard shows none.
func (a *Algorithm) Learner(w *Worker) (model.Learner, error) {
	if w.owner != a {
		if err := a.ready(w); err != nil {
			return nil, err
		}
	}
	if g, ok := w.guard.(interface{ Learner() model.Learner }); ok {
		return g.Learner(), nil
	}
	return a.setup.Model.Learner()
}

// Aggregate is the server's half: it moves the state on by one round.
func (a *Algorithm) Aggregate(st *State, r Releases) Outcome {
	st.Round++
	if r.Sum != nil {
		return a.aggregateSum(st, r)
	}
	gathered, err := a.protection.Gather(st, r)
	if err != nil {
		return Outcome{Err: fmt.Errorf("round %d: %w", st.Round, err)}
	}
	out := a.method.Aggregate(st, gathered)
	if len(gathered.Clients) != len(r.Clients) { // one release stands for all
		out.Assigned = make([]int, len(r.Clients))
	}
	return out
}

// aggregateSum has the method move on by one release that stands for all.
func (a *Algorithm) aggregateSum(st *State, r Releases) Outcome {
	if !a.sums() {
		return Outcome{Err: fmt.Errorf("round %d: its releases were summed up, but under privacy.protects %s the server needs them one by one for %s",
			st.Round, a.setup.Run.Privacy.Protects, a.setup.Run.Algorithm.Kind)}
	}
	out := a.method.Aggregate(st, r.Sum.asOne(r.Declined))
	if out.Assigned != nil {
		out.Assigned = r.Sum.Assigned
	}
	return out
}

// Adopt sets dst to the model that a participant uses once the server is where b says:
// call it with the broadcast that follows the last round. With a learner, which may be
// nil, a method can ask the participant's own examples. It changes nothing.
func (a *Algorithm) Adopt(dst []float64, b Broadcast, p *Participant, l model.Learner) {
	a.method.Adopt(dst, &b, p, l)
}

// ReleaseBounds is what the values of a release may be, in ascending order: a server
// refuses others, for it could not go on with them.
func (a *Algorithm) ReleaseBounds() []Bound {
	if a.length == 0 {
		return nil
	}
	bounds := a.protection.Bounds()
	if n := a.setup.Parameters; a.outline.Declares {
		// These are divided by and squared, so that they may be no tiny fractions either.
		bounds = append(bounds, Bound{
			From: n, To: n + DeclarationLength,
			Least: 1 / (MostAnywhere * MostAnywhere * MostAnywhere * MostAnywhere), Most: MostAnywhere * MostAnywhere,
		})
	}
	return bounds
}

// Price is Protection's.
func (a *Algorithm) Price(b Broadcast) (event.Release, bool, error) {
	r, ok, err := a.protection.Price(&b)
	if err != nil {
		err = fmt.Errorf("round %d: %w", b.Round+1, err)
	}
	return r, ok, err
}

// PriceAhead is Protection's.
func (a *Algorithm) PriceAhead(p *Participant, from int) (event.Release, int, error) {
	if rounds := a.setup.Run.Algorithm.Rounds; from < 0 || from >= rounds {
		return event.Release{}, 0, fmt.Errorf("round %d is not among the %d rounds", from+1, rounds)
	}
	return a.protection.PriceAhead(p, from)
}

// Spend is Protection's.
func (a *Algorithm) Spend(p *Participant) (account.Guarantee, *account.Guarantee, error) {
	return a.protection.Spend(p)
}

// RespondOpenly is Respond for simulations, which have nothing to hide from whoever
// runs them: a mishap is an error.
func RespondOpenly(a *Algorithm, w *Worker, b Broadcast, p *Participant, out []float64) (released bool, err error) {
	released, err = a.Respond(w, b, p, out)
	if err == nil && p.Mishap != nil {
		return false, p.Mishap
	}
	return released, err
}

// Worker is the memory that one goroutine reuses, for one algorithm at a time.
type Worker struct {
	owner  *Algorithm
	guard  Guard
	theta  []float64
	offset []float64
	sent   Broadcast
	_      [128]byte // the next worker's fields lie on other cache lines
}

// Theta is room for a model of n parameters.
func (w *Worker) Theta(n int) []float64 { return sized(&w.theta, n) }

// Trained is where a model of n parameters is trained that is sent afterwards: in out
// itself, where the guard sends models as it trains them, and otherwise apart, so that
// nothing lies in out that is not protected yet.
func (w *Worker) Trained(g Guard, out []float64, n int) []float64 {
	if _, as := g.(SendsAsTrained); as && len(out) >= n {
		return out[:n]
	}
	return w.Theta(n)
}

// Offset is room for a regulariser's, of n values.
func (w *Worker) Offset(n int) []float64 { return sized(&w.offset, n) }

// sized is a worker's vector of n values. Two workers' small ones must not share a cache
// line.
func sized(kept *[]float64, n int) []float64 {
	if len(*kept) != n {
		*kept = make([]float64, n, max(n, 32))
	}
	return *kept
}

// Towards is the gradient of lambda/2*|theta - centre|^2.
func (w *Worker) Towards(centre []float64, lambda float64) Pull {
	offset := w.Offset(len(centre))
	for i, c := range centre {
		offset[i] = -lambda * c
	}
	return Pull{Slope: lambda, Offset: offset}
}

// Declare writes a participant's public numbers to the end of a release.
func (p *Participant) Declare(tail []float64, cluster int) {
	d := Declaration{Weight: p.Plan.Weight, Cluster: cluster, Variance: p.Plan.Variance(), Steps: float64(p.Plan.Steps)}
	d.write(tail)
}

// ErrNotFinite means that training diverged.
var ErrNotFinite = errors.New("training left the finite numbers")

// NotFinite is nil unless theta has left the finite numbers; then it is ErrNotFinite.
func NotFinite(theta []float64, step float64) error {
	if err := mech.CheckFinite(theta); err != nil {
		return fmt.Errorf("%w (%w); try a smaller algorithm.local.step than %v", ErrNotFinite, err, step)
	}
	return nil
}

// A release is a model and, for some methods, what the participant declares beside it:
// its weight, its cluster, the variance of the noise in every coordinate and the number
// of steps. None of it comes from an example's content; a cluster that is declared was
// chosen privately and paid for, or nothing is protected.
const (
	tailWeight = iota
	tailCluster
	tailVariance
	tailSteps
	// DeclarationLength is how many values a declaration has.
	DeclarationLength
)

// Declaration is what a participant says beside its model.
type Declaration struct {
	Weight   float64
	Cluster  int
	Variance float64
	Steps    float64
}

func (d Declaration) write(tail []float64) {
	tail[tailWeight], tail[tailCluster] = d.Weight, float64(d.Cluster)
	tail[tailVariance], tail[tailSteps] = d.Variance, d.Steps
}

// Declared reads a declaration. One that declares what cannot be is left out: it comes
// from outside. Where all weigh the same (equal) nobody declares another weight than 1.
func Declared(tail []float64, clusters int, equal bool) (d Declaration, ok bool) {
	at := tail[tailCluster]
	d = Declaration{Weight: tail[tailWeight], Variance: tail[tailVariance], Steps: tail[tailSteps]}
	ok = d.Weight > 0 && (!equal || d.Weight == 1) && d.Weight <= math.MaxInt32 && d.Steps >= 1 && d.Steps <= math.MaxInt32 &&
		d.Variance >= 0 && d.Variance <= math.MaxFloat64 && at >= 0 && at < float64(clusters) && at == math.Floor(at)
	if ok {
		d.Cluster = int(at)
	}
	return d, ok
}

// MostAnywhere is LargestValue where no lattice sets a smaller one: far above every
// useful parameter, and so far below the largest float64 that squares and sums of
// such values stay finite.
const MostAnywhere = 1e12

// LargestValue is the largest magnitude that a value of a release or a broadcast may
// have by the run file. It follows from public settings alone. With exact noise on
// updates it is what fits the coarsest lattice that any model could have there: that
// of one parameter with the whole of the first radius. A model's own lattices are
// finer, and hold less: ReleaseBounds.
func LargestValue(run config.Run) float64 {
	p := run.Privacy
	if p.Protects != "update" || p.Noise == "simulated" || !(p.NoiseMultiplier > 0) {
		return MostAnywhere
	}
	radius := p.Radius // falls from round to round
	if run.Algorithm.Mode != "sound" {
		radius = 64 * p.RadiusFloor
	}
	l, err := mech.LatticeFor(p.NoiseMultiplier * radius * math.Sqrt2)
	if err != nil { // no release can be made, which others say
		return MostAnywhere
	}
	return min(MostAnywhere, mech.MaxCoordinate*l.Step)
}

// Bound is what the values from From up to To of a release may be: 0, or of a
// magnitude from Least to Most.
type Bound struct {
	From, To    int
	Least, Most float64
}

// Clamp brings the values of a release within bounds. It is post-processing: it reads
// nothing but the release, and keeps a server from refusing it.
func Clamp(release []float64, bounds []Bound) {
	for _, b := range bounds {
		for i, v := range release[b.From:b.To] {
			release[b.From+i] = max(-b.Most, min(b.Most, v))
		}
	}
}
