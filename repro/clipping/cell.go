package clipping

import (
	"errors"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/sim"
)

// key is everything that a cell, one run, depends on.
type key struct {
	Study    string  `json:"study"` // data.kind
	Method   method  `json:"method"`
	Arm      arm     `json:"arm,omitempty"`     // what is otherwise than the method has it; empty: nothing
	Epsilon  float64 `json:"epsilon,omitempty"` // of all runs that share the budget
	Runs     int     `json:"runs,omitempty"`    // that share it
	Setting  setting `json:"setting"`
	Momentum float64 `json:"momentum,omitempty"`
	Seed     uint64  `json:"seed"`
	Steps    int     `json:"steps"`
	Changed  string  `json:"changed,omitempty"` // by --set and by the scale
}

// String tells a cell in words: errors name it so.
func (k key) String() string {
	text := fmt.Sprintf("%s, %s", k.Study, k.Method)
	if k.Arm != "" {
		text += fmt.Sprintf(" (%s)", k.Arm)
	}
	if k.Runs > 0 {
		text += fmt.Sprintf(", epsilon %v over %d runs", k.Epsilon, k.Runs)
	}
	if text += ", " + k.Setting.String(); k.Momentum > 0 {
		text += fmt.Sprintf(", momentum %v", k.Momentum)
	}
	return fmt.Sprintf("%s, seed %d, %d steps", text, k.Seed, k.Steps)
}

// outcome is what came of a cell. Figures are the share of right answers in per cent, or
// 100 times the mean squared error.
type outcome struct {
	Figure event.Number `json:"figure"`         // of the last model
	Best   event.Number `json:"best"`           // of the best of all judgements
	Noise  event.Number `json:"noise"`          // S that a step is charged for; 0: none
	Run    int          `json:"run,omitempty"`  // privacy.run, by which batches and noise were drawn; cells of before 17 November 2026 have none
	Path   []moment     `json:"path,omitempty"` // one for every judgement, where something adapts
}

// moment is how far a run has come.
type moment struct {
	Steps  int           `json:"steps"`
	Figure event.Number  `json:"figure"`
	Clip   *event.Number `json:"clip,omitempty"`
	Step   *event.Number `json:"step,omitempty"`
	// Shares of the steps since the last moment, known in simulation only: examples longer
	// than the clip; signs that raised clip and step; signs that agree with those without noise.
	Clipped   *event.Number `json:"clipped,omitempty"`
	ClipUp    *event.Number `json:"clip_up,omitempty"`
	StepUp    *event.Number `json:"step_up,omitempty"`
	ClipAgree *event.Number `json:"clip_agree,omitempty"`
	StepAgree *event.Number `json:"step_agree,omitempty"`
}

type record = lab.Record[key, outcome]

// runner makes a cell; tests have one that makes figures up.
type runner func(l *lab.Lab, t task, k key) (outcome, error)

// simulate is the runner of real cells.
func simulate(l *lab.Lab, t task, k key) (outcome, error) {
	run, noise, err := t.run(l, k)
	if err != nil {
		return outcome{}, err
	}
	if run, err = l.Resolve(run); err != nil {
		return outcome{}, err
	}
	run.Run.Workers = l.Share()
	res, err := l.Result(run)
	if errors.Is(err, fl.ErrNotFinite) { // a figure like any other: the worst
		return t.diverged(run, noise), nil
	}
	if err != nil {
		return outcome{}, err
	}
	o := t.outcome(res, run)
	if k.Method != online && k.Arm == "" {
		o.Path = nil // lines of thousands of cells are committed
	}
	return o, nil
}

// diverged is what came of a run that left the finite numbers: nothing is right.
func (t task) diverged(run config.Run, noise float64) outcome {
	o := outcome{Noise: short(noise), Run: run.Privacy.Run}
	if t.lower {
		o.Figure, o.Best = 100, 100
	}
	return o
}

// outcome boils a run down.
func (t task) outcome(res sim.Result, run config.Run) outcome {
	o := outcome{Figure: t.figure(res.Metrics.Loss, res.Metrics.Error), Run: run.Privacy.Run}
	o.Best = o.Figure
	if run.Privacy.Protects == "example" {
		o.Noise = short(float64(res.Participants[0].Noise))
	}
	for _, r := range res.History.Rounds {
		m := moment{Steps: r.Round * t.block, Figure: t.figure(r.Loss, r.Error)}
		if c := r.Steps; c != nil {
			clip, step := short(float64(c.Clip)), short(float64(c.Step))
			m.Clip, m.Step, m.Clipped, m.ClipUp, m.StepUp, m.ClipAgree, m.StepAgree = &clip, &step, shortened(c.Clipped), shortened(c.ClipUp), shortened(c.StepUp), shortened(c.ClipAgree), shortened(c.StepAgree)
		}
		if t.better(float64(m.Figure), float64(o.Best)) {
			o.Best = m.Figure
		}
		o.Path = append(o.Path, m)
	}
	return o
}

// figure is what the thesis's tables hold: accuracy in per cent, or 100 times the error of
// pixels between 0 and 1. Of a model that has left the finite numbers it is the worst.
func (t task) figure(loss event.Number, wrong *event.Number) event.Number {
	if !t.lower && wrong != nil {
		return short(100 * (1 - float64(*wrong)))
	}
	if v := 100 * float64(loss); v <= 100 {
		return short(v)
	}
	return 100
}

// short leaves what a committed line is worth: six digits.
func short(v float64) event.Number {
	if v == 0 || math.IsInf(v, 0) {
		return event.Number(v)
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	return event.Number(math.Round(v*scale) / scale)
}

func shortened(v *event.Number) *event.Number {
	if v == nil {
		return nil
	}
	s := short(float64(*v))
	return &s
}

// run is the run file of a cell, and the noise that its steps are charged for.
func (t task) run(l *lab.Lab, k key) (config.Run, float64, error) {
	r := config.Default(k.Study, "central", "sound")
	r.Name, r.Seed = "clipping-"+k.Study, k.Seed
	if t.prepare != nil {
		t.prepare(&r)
	}
	block := t.block
	r.Algorithm.Rounds = k.Steps / block
	r.Algorithm.Local.Steps, r.Algorithm.Local.Batch, r.Algorithm.Local.Step = block, batch, k.Setting.Step
	r.Algorithm.Stop.Patience, r.Algorithm.Stop.Return, r.Algorithm.Stop.Every = 0, "last", 1
	if k.Momentum > 0 {
		r.Algorithm.Local.Optimiser, r.Algorithm.Local.Momentum = "momentum", k.Momentum
	}
	if l.Scale == lab.Smoke {
		t.shrink(&r)
	}
	if k.Method == noDP {
		lab.Unprotected(&r)
		return r, 0, nil
	}
	noise, err := noiseFor(k.Epsilon, k.Runs, k.Steps, r.Privacy.PublicSize)
	if err != nil {
		return r, 0, err
	}
	place, err := placeOf(k.Method, k.Runs, k.Setting)
	if err != nil {
		return r, 0, err
	}
	p := &r.Privacy
	p.Protects, p.Epsilon, p.NoiseMultiplier, p.Delta, p.Clip = "example", k.Epsilon, 0, delta, k.Setting.Clip
	p.Runs, p.Run = k.Runs, place
	switch k.Method {
	case online:
		p.Clipping.Rule = "online"
	case quantile:
		p.Clipping.Rule, p.Clipping.Quantile = "quantile", k.Setting.Quantile
	case adamWOSM:
		p.Clipping.Rule = "adam-wosm"
	case threshold:
		p.Clipping.Rule = "fixed"
	}
	k.Arm.apply(&r)
	return r, noise, nil
}
