package audit

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// Names of the attacks.
const (
	NameDLG        = "dlg"
	NameClosedForm = "closed-form"
	// NameGuess is no attack but the control: the mean example of other clients.
	NameGuess = "no-update"
)

// InspectOptions say whose update is attacked, and how hard.
type InspectOptions struct {
	Client int
	// OneExample leaves the client one example and one step: the attacker's best.
	OneExample bool
	Example    int // which one
	// Hypotheses to start from, one after another; nil: those of the first round.
	Hypotheses  []float64
	Evaluations int // of each attack
	Restarts    int // of DLG
}

// Inspection answers what the server could see of a client's update.
type Inspection struct {
	Client          int          `json:"client"`
	Examples        int          `json:"examples"` // that the update was trained on
	Steps           int          `json:"steps"`
	Parameters      int          `json:"parameters"`
	Kind            string       `json:"kind"` // pictures or rows
	NoiseMultiplier event.Number `json:"noise_multiplier"`
	Privacy         fl.Privacy   `json:"privacy"`
	// Hypothesis is the one whose neighbourhood the update lies in, as the server
	// sees it.
	Hypothesis int       `json:"hypothesis"`
	Attacks    []Finding `json:"attacks"`
	Stronger   string    `json:"stronger"` // attack
	Recovered  bool      `json:"recovered"`
	Verdict    string    `json:"verdict"`
}

// Finding is what one attack found, held against the client's nearest example.
type Finding struct {
	Attack  string `json:"attack"`
	Example int    `json:"example"` // of the client's, from 0
	// PSNR and SSIM are of pictures, null for rows.
	PSNR *event.Number `json:"psnr"`
	SSIM *event.Number `json:"ssim"`
	// Error is the distance from the row over the row's length, null for pictures
	// and where the attack tells a direction only.
	Error     *event.Number `json:"relative_error"`
	Cosine    event.Number  `json:"cosine"`
	Label     *int          `json:"label"` // that the attack tells
	TrueLabel *int          `json:"true_label"`
	Recovered bool          `json:"recovered"`
	Fault     string        `json:"fault"` // why the attack could not be made

	Original, Found []float64 `json:"-"`
}

const (
	// rowError is the relative error below which a row counts as recovered.
	rowError = 0.05
	// chanceSSIM is by how much an attack must beat the control to count: among
	// hundreds of examples, some resemble anything a little.
	chanceSSIM = 0.2
	// exactCosine is the cosine above which a direction counts as known.
	exactCosine = 1 - 1e-6
)

// Inspect lets a client of a run make one update, exactly as the run file says,
// and attacks what it sends.
func Inspect(ctx context.Context, run config.Run, folder *data.Folder, o InspectOptions) (Inspection, error) {
	f, err := folder.Load(run.Data, run.Seed)
	if err != nil {
		return Inspection{}, err
	}
	if o.Client < 0 || o.Client >= len(f.Train) {
		return Inspection{}, fmt.Errorf("audit: client %d; allowed: 0 to %d", o.Client, len(f.Train)-1)
	}
	mine := f.Train[o.Client]
	if mine.People != nil {
		return Inspection{}, fmt.Errorf("audit: the examples are people, built of each other's contacts, and neither attack knows them; allowed: data of rows or pictures")
	}
	first := 0
	if o.OneExample {
		first = o.Example
		if mine, err = oneExample(mine, o.Example); err != nil {
			return Inspection{}, err
		}
		run.Algorithm.Local.Epochs, run.Algorithm.Local.Batch, run.Algorithm.Local.Limit = 1, 0, 0
	}
	n, m, err := networkOf(run, f)
	if err != nil {
		return Inspection{}, err
	}
	if err := fl.Affordable(run, m.Parameters()); err != nil {
		return Inspection{}, fmt.Errorf("audit: %w", err)
	}
	g, err := fl.New(run, m, max(1, len(f.Train)))
	if err != nil {
		return Inspection{}, err
	}
	u, p, err := release(g, run, &mine, o)
	if err != nil {
		return Inspection{}, err
	}
	out := Inspection{
		Client: o.Client, Examples: trainedOn(run, &mine), Steps: u.Steps, Parameters: m.Parameters(), Kind: "rows",
		NoiseMultiplier: event.Number(run.Privacy.NoiseMultiplier), Hypothesis: u.hypothesis,
		Privacy: g.StateUpdates([]fl.Participant{*p}),
	}
	if mine.Images != nil {
		out.Kind = "pictures"
	}
	loss := run.Algorithm.Local.Loss
	closed, err := ClosedForm{Loss: loss, Evaluations: o.Evaluations}.Attack(ctx, n, u.Update)
	if err := out.add(ctx, NameClosedForm, n, &mine, closed, err); err != nil {
		return Inspection{}, err
	}
	dlg := DLG{Loss: loss, Evaluations: o.Evaluations, Restarts: o.Restarts, Seed: run.Seed, Floor: NoiseFloor(run.Privacy.NoiseMultiplier)}
	leaked, err := dlg.Attack(ctx, n, u.Update)
	if mine.Images == nil {
		leaked.Label = -1 // rows have targets, not classes
	}
	if err := out.add(ctx, NameDLG, n, &mine, leaked, err); err != nil {
		return Inspection{}, err
	}
	guess := Recovered{Picture: MeanExample(f.Validation, n.Input.Len()), Label: -1, Scaled: true}
	if err := out.add(ctx, NameGuess, n, &mine, guess, nil); err != nil {
		return Inspection{}, err
	}
	for k := range out.Attacks {
		if out.Attacks[k].Fault == "" {
			out.Attacks[k].Example += first
		}
	}
	out.judge()
	return out, nil
}

// update is what the server got, and from which hypothesis it thinks it came.
type update struct {
	Update
	hypothesis int
}

// release is the pipeline's own: what fl sends for the client in one round.
func release(g *fl.Algorithm, run config.Run, mine *data.Client, o InspectOptions) (update, *fl.Participant, error) {
	state := g.Start()
	if o.Hypotheses != nil {
		if len(o.Hypotheses) != len(state.Hypotheses) {
			return update{}, nil, fmt.Errorf("audit: the models have %d parameters in all, the run file's %d", len(o.Hypotheses), len(state.Hypotheses))
		}
		copy(state.Hypotheses, o.Hypotheses)
	}
	b, err := g.Broadcast(state)
	if err != nil {
		return update{}, nil, err
	}
	p := &fl.Participant{ID: o.Client, Data: mine}
	if err := g.Prepare(p); err != nil {
		return update{}, nil, err
	}
	sent := make([]float64, g.ReleaseLength())
	ok, err := fl.RespondOpenly(g, new(fl.Worker), b, p, sent)
	if err != nil {
		return update{}, nil, err
	}
	if !ok {
		return update{}, nil, fmt.Errorf("audit: %w: the client declines, because privacy.ceiling would be exceeded; nothing is sent", fl.ErrRefused)
	}
	u := update{Update: Update{After: sent, Step: run.Algorithm.Local.Step, Steps: steps(run, mine)}}
	nearest := math.Inf(1)
	for j := 0; (j+1)*len(sent) <= len(b.Hypotheses); j++ {
		h := b.Hypotheses[j*len(sent) : (j+1)*len(sent)]
		if d := kernel.SquaredDistance(h, sent); d < nearest {
			nearest, u.Before, u.hypothesis = d, h, j
		}
	}
	return u, p, nil
}

// add scores an attack against the client's examples. An attack that cannot be
// made is a finding too; a stop is not.
func (i *Inspection) add(ctx context.Context, name string, n Network, mine *data.Client, r Recovered, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f := Finding{Attack: name, Example: -1}
	if err != nil {
		f.Fault = err.Error()
	} else if f, err = nearestExample(f, n, mine, r); err != nil {
		return err
	}
	i.Attacks = append(i.Attacks, f)
	return nil
}

// judge names the stronger attack and says what came out. The control is last:
// what does not beat it was found by chance.
func (i *Inspection) judge() {
	best, control := -1, len(i.Attacks)-1
	for k, f := range i.Attacks[:control] {
		if f.Fault == "" && (best < 0 || f.beats(i.Attacks[best])) {
			best = k
		}
	}
	if best < 0 {
		i.Verdict = "neither attack could be made on this update; that does not show that it is safe"
		return
	}
	f, guess := i.Attacks[best], i.Attacks[control]
	i.Stronger, i.Recovered = f.Attack, f.Recovered && f.beats(guess)
	what := "example"
	if i.Kind == "rows" {
		what = "row"
	}
	if i.Recovered {
		i.Verdict = fmt.Sprintf("the server can recover %s %d of the client by the %s attack", what, f.Example, f.Attack)
		return
	}
	for _, f := range i.Attacks[:control] {
		if f.SSIM != nil && *f.SSIM >= ResemblesSSIM && *f.SSIM > *guess.SSIM+chanceSSIM {
			i.Verdict = fmt.Sprintf("no %s is recovered above %d dB, but what the %s attack finds resembles %s %d (SSIM %.2f)",
				what, SuccessPSNR, f.Attack, what, f.Example, float64(*f.SSIM))
			return
		}
	}
	if i.Kind == "rows" && i.Examples == 1 && math.Abs(float64(i.Attacks[0].Cosine)) > exactCosine {
		i.Verdict = fmt.Sprintf("the server learns row %d of the client up to its length and sign", i.Attacks[0].Example)
		return
	}
	i.Verdict = fmt.Sprintf("these two attacks do not recover any %s of the client; that does not show that others would not", what)
}

// beats compares two findings of one kind.
func (f Finding) beats(other Finding) bool {
	switch {
	case f.PSNR != nil && other.PSNR != nil:
		return *f.PSNR > *other.PSNR
	case f.Error != nil && other.Error != nil:
		return *f.Error < *other.Error
	case (f.Error == nil) != (other.Error == nil):
		return f.Error != nil
	}
	return math.Abs(float64(f.Cosine)) > math.Abs(float64(other.Cosine))
}

// errNoExample means that a client has nothing to compare with.
var errNoExample = errors.New("the client has no such example")
