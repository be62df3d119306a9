// Package certificate gathers what audits and attacks found about a run in one signed document.
package certificate

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
)

// What a certificate may rest on, by the names of the commands.
const (
	Mechanism  = "mechanism"
	Canary     = "canary"
	OneRun     = "onerun"
	Membership = "membership"
	Inversion  = "inversion"
)

// Names are all of them, bounds first.
var Names = []string{Mechanism, Canary, OneRun, Membership, Inversion}

// Options say what is tried, and how hard. They are fixed before anything is played.
type Options struct {
	Confidence float64  // of all bounds together
	Canaries   int      // of the mechanism's audit: in, and as many out
	Runs       int      // of the many-run audit: with the canary, and as many without
	Planted    int      // canaries of the one-run audit
	StepsOnly  bool     // the one-run audit plays steps without data instead of a training
	References int      // models that the membership attack trains like the target
	Without    []string // left out
}

// DefaultOptions are those of the command.
func DefaultOptions() Options {
	return Options{Confidence: 0.95, Canaries: 1000, Runs: 2000, Planted: 1000}
}

// Check says what cannot be tried.
func (o Options) Check() error {
	for _, name := range o.Without {
		if !slices.Contains(Names, name) {
			return fmt.Errorf("certificate: %q is nothing that could be left out; allowed: %s", name, strings.Join(Names, ", "))
		}
	}
	if !(o.Confidence >= 0.5 && o.Confidence <= 1-1e-9) {
		return fmt.Errorf("certificate: confidence %v; allowed: 0.5 to 0.999999999", o.Confidence)
	}
	if o.References < 0 || o.References > 1000 {
		return fmt.Errorf("certificate: %d references; allowed: 0 to 1000", o.References)
	}
	if err := (audit.CanaryOptions{Runs: o.Canaries}).CheckGradients(); err != nil {
		return err
	}
	if err := (audit.CanaryOptions{Runs: o.Runs}).Check(); err != nil {
		return err
	}
	return audit.OneRunOptions{Canaries: o.Planted}.Check()
}

// Plan is everything that is settled beforehand: what is tried, and how the bounds share
// the chance that one of them errs.
type Plan struct {
	Confidence float64 `json:"confidence"` // of all bounds together
	// Seed follows from the model and the run file, so that nobody chooses it.
	Seed       uint64    `json:"seed"`
	Bounds     []Planned `json:"bounds"`
	Attacks    []string  `json:"attacks"`
	References int       `json:"references"`
	NotTried   []Left    `json:"not_tried"`
}

// Planned is a bound with its own confidence.
type Planned struct {
	Audit      string  `json:"audit"`
	Confidence float64 `json:"confidence"`
	Canaries   int     `json:"canaries"` // in and out together; of the many-run audit, runs
	StepsOnly  bool    `json:"steps_only"`
}

// Left is what was not tried, and why.
type Left struct {
	Audit string `json:"audit"`
	Why   string `json:"why"`
}

// leastPlanted is how many canaries a training must take to be worth while: with fewer,
// guesses that are all right show hardly more than epsilon 1.
const leastPlanted = 100

// NewPlan settles what applies to a run.
func NewPlan(s Subject, o Options) (Plan, error) {
	if err := o.Check(); err != nil {
		return Plan{}, err
	}
	run := s.Target.Run
	p := Plan{Confidence: o.Confidence, Seed: binary.BigEndian.Uint64(s.seed()), Bounds: []Planned{}, Attacks: []string{}, References: o.References, NotTried: []Left{}}
	gradients, row := whyNot(append(fl.Check(run), audit.CheckGradients(run)...)), whyNot(append(fl.Check(run), audit.CheckCanary(run)...))
	steps := whyNot(append(fl.Check(run), audit.CheckMechanism(run)...))
	planted := Planned{Audit: OneRun, Canaries: o.Planted, StepsOnly: o.StepsOnly}
	switch n := s.Result.Parameters; {
	case n < leastPlanted:
		planted.StepsOnly = true // every canary needs a parameter of its own
	case !o.StepsOnly:
		planted.Canaries = min(planted.Canaries, n)
	}
	sent := ""
	if fl.IsCentral(run.Algorithm.Kind) {
		sent = "nothing is sent: whoever holds the examples trains"
	}
	nobody := ""
	if shape, _ := data.ShapeOf(run.Data); shape.Windows > 0 {
		nobody = "people are judged by their own later days, so that nobody is a non-member"
	}
	for _, one := range []struct {
		name, why string
		planned   *Planned
	}{
		{Mechanism, steps, &Planned{Audit: Mechanism, Canaries: 2 * o.Canaries}},
		{Canary, row, &Planned{Audit: Canary, Canaries: 2 * o.Runs}},
		{OneRun, gradients, &planted},
		{Membership, nobody, nil},
		{Inversion, sent, nil},
	} {
		switch {
		case slices.Contains(o.Without, one.name):
			p.NotTried = append(p.NotTried, Left{one.name, "left out as asked"})
		case one.why != "":
			p.NotTried = append(p.NotTried, Left{one.name, one.why})
		case one.planned != nil:
			p.Bounds = append(p.Bounds, *one.planned)
		default:
			p.Attacks = append(p.Attacks, one.name)
		}
	}
	for i := range p.Bounds {
		p.Bounds[i].Confidence = 1 - (1-o.Confidence)/float64(len(p.Bounds))
	}
	return p, nil
}

// whyNot is the first thing for which a run cannot be audited; empty: it can.
func whyNot(faults config.Faults) string {
	if len(faults) == 0 {
		return ""
	}
	return faults[0].Path + " " + faults[0].Message
}

// Words are a plan in lines, as it is told before anything is played.
func (p Plan) Words() []string {
	var out []string
	for _, b := range p.Bounds {
		out = append(out, fmt.Sprintf("bound   %s, at confidence %.4g: all %s together have %.4g", b.Audit, b.Confidence, bounds(len(p.Bounds)), p.Confidence))
	}
	for _, a := range p.Attacks {
		out = append(out, fmt.Sprintf("attack  %s, which describes and bounds nothing", a))
	}
	for _, l := range p.NotTried {
		out = append(out, fmt.Sprintf("not     %s: %s", l.Audit, l.Why))
	}
	return out
}

func bounds(n int) string {
	if n == 1 {
		return "of one bound"
	}
	return fmt.Sprintf("%d bounds", n)
}
