package membership

import (
	"context"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/compute"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/sim"
)

// The attacks, in the order in which they are told.
const (
	Loss       = "loss"
	Noisy      = "noisy neighbours"
	Shadows    = "shadows"
	References = "references"
	Ratio      = "likelihood ratio"
)

// Options say which attacks are made, and how.
type Options struct {
	Unit       string // example or client
	Client     string // whose examples are attacked; empty: everybody's
	References int    // models of other members; 0: none
	Shadows    int    // models of parts of the target's members; 0: none
	Neighbours int    // of every example; 0: that attack is not made
	// Sigma is the deviation of their noise, in units of the root mean square of what it is
	// added to; 0: 1.8 for words, and otherwise chosen on one half and judged on the other.
	Sigma  float64
	Level  Level
	Seed   uint64
	Folder string // where other models are kept
	// Continue is the command that goes on after an interruption.
	Continue string
	Tick     func(doing string, m sim.Moment) // of other models' training
	// Seen keeps losses for later measures of the same target; nil: they are computed anew.
	Seen *Seen
}

// Seen are losses of a target's attacked examples, by the model that they are under. It
// serves one target, one unit and one client: others' examples are others.
type Seen struct{ losses map[string]losses }

// WordsSigma is the noise on words: the best over models of several sizes and lengths of
// training, so that no labels are needed to find it.
const WordsSigma = 1.8

// sigmas are what is searched where none is known.
var sigmas = []float64{0.05, 0.1, 0.2, 0.35, 0.7, 1, 1.4, 1.8, 2.5}

// Check says what is wrong with options.
func (o Options) Check() error {
	switch {
	case o.Unit != UnitExample && o.Unit != UnitClient:
		return fmt.Errorf("unit %q; allowed: example, client", o.Unit)
	case o.References < 0 || o.References > 1000:
		return fmt.Errorf("%d references; allowed: 0 to 1000", o.References)
	case o.Shadows < 0 || o.Shadows > 1000:
		return fmt.Errorf("%d shadows; allowed: 0 to 1000", o.Shadows)
	case o.Neighbours < 0 || o.Neighbours > 10000:
		return fmt.Errorf("%d neighbours; allowed: 0 to 10000", o.Neighbours)
	case !(o.Sigma >= 0 && o.Sigma <= 1e6):
		return fmt.Errorf("sigma %v; allowed: 0 (found for you) to 1e6, in units of the inputs' root mean square", o.Sigma)
	case o.Folder == "" && o.References+o.Shadows > 0:
		return fmt.Errorf("%d other models, and no folder to keep them in", o.References+o.Shadows)
	}
	return o.Level.Check()
}

// Attack is one attack and how it fared.
type Attack struct {
	Attack     string        `json:"attack"`
	Models     int           `json:"models"`     // other ones that it needs; 0: none
	Neighbours int           `json:"neighbours"` // 0: it needs none
	Sigma      *event.Number `json:"sigma"`      // null: there is no noise
	// Chosen says that sigma was chosen on one half: all figures are of the other one.
	Chosen bool `json:"sigma_chosen"`
	Figures
	// Scores are those that Figures are of.
	Scores Scores `json:"-"`
}

// Target is a trained run, or a folder of models: OfFolder.
type Target struct {
	Run    config.Run // as resolved
	Models *artifact.Model
	// Members and Others are examples that are known to have been trained on, and not, by
	// client, as artifact reads them. Nil: what the run's own data say.
	Members, Others []data.Client
}

// Found is what attacks on a target found.
type Found struct {
	Unit       string   `json:"unit"`
	Client     string   `json:"client"` // empty: everybody's examples, or every client
	Members    int      `json:"members"`
	NonMembers int      `json:"non_members"`
	Attacks    []Attack `json:"attacks"`
	Verdict    string   `json:"verdict"`
	NotCovered []string `json:"not_covered"`
	Says       []string `json:"says"`
	// Device is what computed, where the target's run asks for more than this processor.
	Device *compute.Used `json:"device,omitempty"`
}

// attacking is an attack under way.
type attacking struct {
	*eye
	o       Options
	member  []bool // by example or client
	first   []bool // of these: what thresholds and sigma are chosen on
	target  losses
	sights  []sight
	classes bool
}

// Measure makes the attacks on a target, on its own data.
func Measure(ctx context.Context, t Target, folder *data.Folder, o Options) (Found, error) {
	if err := o.Check(); err != nil {
		return Found{}, err
	}
	f, err := t.federation(folder, o)
	if err != nil {
		return Found{}, err
	}
	p, err := newPopulation(t.Run, f, t.Members == nil && t.Others != nil, o.Unit, o.Client)
	if err != nil {
		return Found{}, err
	}
	e, err := newEye(ctx, p)
	if err != nil {
		return Found{}, err
	}
	defer e.close()
	a := &attacking{eye: e, o: o, member: p.member, classes: f.Classes > 0 && t.Run.Algorithm.Local.Loss != "hinge"}
	if o.Unit == UnitClient {
		a.member = nil
		for _, s := range p.subjects {
			a.member = append(a.member, s.trains)
		}
	}
	a.first = halves(a.member, o.Seed)
	if a.sights, err = e.sights(t.Models); err != nil {
		return Found{}, err
	}
	if a.target, err = a.under(t.Models, a.sights); err != nil {
		return Found{}, err
	}
	attacks, err := a.all()
	if err != nil {
		return Found{}, err
	}
	newcomers := len(t.Models.Clients()) > 0 && slices.ContainsFunc(a.sights, func(s sight) bool { return s.role != artifact.RoleClient })
	found := summed(p, newcomers, o, attacks)
	found.Device = e.placed.Used
	return found, nil
}

// halves says of every one whether it is of the first half, of members and of others.
func halves(member []bool, seed uint64) []bool {
	order := identity(len(member))
	family := rng.NewFamily(seed, "halves of the scores")
	family.Stream(0, 0).Shuffle(order)
	first := make([]bool, len(member))
	var seen [2]int
	for _, i := range order {
		kind := 0
		if member[i] {
			kind = 1
		}
		first[i] = seen[kind]%2 == 0
		seen[kind]++
	}
	return first
}

func (a *attacking) all() ([]Attack, error) {
	plain, err := a.judged(Attack{Attack: Loss}, byLoss(a.target))
	if err != nil {
		return nil, err
	}
	out := []Attack{plain}
	for _, attack := range []func() ([]Attack, error){a.byNeighbours, a.byShadows, a.byReferences} {
		more, err := attack()
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// perUnit are scores of examples, or of clients: the mean over their examples.
func (a *attacking) perUnit(score []float64) []float64 {
	if a.o.Unit == UnitExample {
		return score
	}
	return averaged(score, a.of, len(a.subjects))
}

// judged adds the figures of a score of all examples to an attack.
func (a *attacking) judged(one Attack, score []float64) (Attack, error) {
	score = a.perUnit(score)
	first := split(score, a.member, func(i int) bool { return a.first[i] })
	second := split(score, a.member, func(i int) bool { return !a.first[i] })
	if one.Scores = second; !one.Chosen {
		one.Scores = split(score, a.member, func(int) bool { return true })
	}
	var err error
	if one.Figures, err = Judge(one.Scores, first, second, a.o.Level); err != nil {
		return one, fmt.Errorf("%s: %w", one.Attack, err)
	}
	return one, nil
}

// byNeighbours compares an example with itself under noise: where a model has learned it by
// heart, noise does more harm.
func (a *attacking) byNeighbours() ([]Attack, error) {
	if a.o.Neighbours == 0 {
		return nil, nil
	}
	sigma, chosen := a.o.Sigma, false
	if sigma == 0 && a.federation.Vocabulary > 0 {
		sigma = WordsSigma
	}
	grid := []float64{sigma}
	if sigma == 0 {
		grid, chosen = sigmas, true
	}
	var best []float64
	most := -1.0
	for _, at := range grid {
		var all []losses
		for k := range a.o.Neighbours {
			one, err := a.noisy(a.sights, a.o.Seed, k, at)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		score := byOthers(a.target, all)
		s := split(a.perUnit(score), a.member, func(i int) bool { return a.first[i] })
		auc := metrics.AUC(s.Members, s.Others)
		if auc != nil && float64(auc.Value) > most || best == nil {
			best, sigma = score, at
			if auc != nil {
				most = float64(auc.Value)
			}
		}
	}
	number := event.Number(sigma)
	one, err := a.judged(Attack{Attack: Noisy, Neighbours: a.o.Neighbours, Sigma: &number, Chosen: chosen}, best)
	return []Attack{one}, err
}

func (a *attacking) trainer() *trainer {
	tick := a.o.Tick
	if tick == nil {
		tick = func(string, sim.Moment) {}
	}
	return &trainer{population: a.population, folder: a.o.Folder, seed: a.o.Seed, proceed: a.o.Continue, tick: tick}
}

// under are the losses under some models: those that were seen before, or new ones.
func (a *attacking) under(m *artifact.Model, sights []sight) (losses, error) {
	hash := m.ModelSHA256 + m.PersonalSHA256
	if a.o.Seen != nil {
		if known, ok := a.o.Seen.losses[hash]; ok && len(known) == len(a.eye.member) {
			return known, nil
		}
	}
	found, err := a.losses(sights)
	if err == nil && a.o.Seen != nil {
		if a.o.Seen.losses == nil {
			a.o.Seen.losses = map[string]losses{}
		}
		a.o.Seen.losses[hash] = found
	}
	return found, err
}

// byModels are the losses under other models.
func (a *attacking) byModels(others []otherModel) ([]losses, error) {
	var out []losses
	for _, m := range others {
		sights, err := a.eye.sights(m.models)
		if err != nil {
			return nil, err
		}
		l, err := a.under(m.models, sights)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

func (a *attacking) byShadows() ([]Attack, error) {
	if a.o.Shadows == 0 {
		return nil, nil
	}
	others, err := a.trainer().shadows(a.ctx, a.o.Shadows)
	if err != nil {
		return nil, err
	}
	all, err := a.byModels(others)
	if err != nil {
		return nil, err
	}
	one, err := a.judged(Attack{Attack: Shadows, Models: len(all)}, byOthers(a.target, all))
	return []Attack{one}, err
}

func (a *attacking) byReferences() ([]Attack, error) {
	if a.o.References == 0 {
		return nil, nil
	}
	others, err := a.trainer().references(a.ctx, a.o.References)
	if err != nil {
		return nil, err
	}
	all, err := a.byModels(others)
	if err != nil {
		return nil, err
	}
	one, err := a.judged(Attack{Attack: References, Models: len(all)}, byOthers(a.target, all))
	if err != nil || len(all) < leastReferences {
		return []Attack{one}, err
	}
	var statistics [][]float64
	var in [][]bool
	for i, l := range all {
		statistics, in = append(statistics, statistic(l, a.classes)), append(in, others[i].in)
	}
	ratio, err := a.judged(Attack{Attack: Ratio, Models: len(all)}, byRatio(statistic(a.target, a.classes), statistics, in))
	return []Attack{one, ratio}, err
}
