package sim

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/model"
)

// UncoveredComparison is what a comparison leaves open.
const UncoveredComparison = "comparison: the runs that this one is compared with spend budgets of their own, and choosing between them by held-out figures is not charged"

// Comparison is the same run file trained with another method, beside the run.
type Comparison struct {
	Algorithm string  `json:"algorithm"`
	Figure    string  `json:"figure"` // that clients are compared by: auc, accuracy or rmse
	Metrics   Metrics `json:"metrics"`
	// Participants are compared one by one where they are judged by their own examples.
	Participants []Compared `json:"participants"`
}

// Compared is one participant under both methods. Figures are of its own held-out
// examples.
type Compared struct {
	Name       string          `json:"name"` // client N, where the data give none
	Examples   int             `json:"test_examples"`
	Figure     *metrics.Figure `json:"figure"`     // under the run's method
	Other      *metrics.Figure `json:"other"`      // under the compared one
	Difference *metrics.Figure `json:"difference"` // the first less the second, paired over its examples
	// Verdict says whether the run's method is better or worse for it, or that the
	// interval of the difference leaves that open: unclear. Empty: there is no difference to
	// be had.
	Verdict string `json:"verdict"`
}

// The verdicts on a difference.
const (
	VerdictBetter  = "better"
	VerdictWorse   = "worse"
	VerdictUnclear = "unclear"
)

// CompareFolder is where in a run directory the run with another method lies.
func CompareFolder(method string) string { return "compare-" + method }

// Variant is a run with another method: the same data, model, training, protection,
// budget and seed. What only some methods read has the method's defaults.
func Variant(run config.Run, method string) config.Run {
	usual := config.Default(run.Data.Kind, method, run.Algorithm.Mode).Algorithm
	v, a := run, run.Algorithm
	if usual.Hypotheses == 1 || a.Hypotheses == 1 {
		a.Hypotheses = usual.Hypotheses
	}
	a.Kind, a.Empty, a.IdleRounds, a.Clustering, a.Lambda, a.Prox = method, usual.Empty, usual.IdleRounds, usual.Clustering, usual.Lambda, usual.Prox
	a.FederatedShare, a.WarmStart, a.Selection = usual.FederatedShare, usual.WarmStart, usual.Selection
	if usual.Stop.Return == "last" { // no server's models to choose a round by
		a.Stop.Return, a.Stop.Patience = "last", 0
	}
	v.Algorithm, v.Judge.Compare = a, nil
	return v
}

// checkCompare finds what keeps a run from being trained with the methods that it is
// compared with.
func checkCompare(run config.Run) config.Faults {
	var c config.Checker
	checks := []func(config.Run) config.Faults{data.Check, model.Check, fl.Check}
	own := map[string]bool{}
	for _, check := range checks {
		for _, f := range check(run) {
			own[f.Path+f.Message] = true
		}
	}
	for i, name := range run.Judge.Compare {
		path := fmt.Sprintf("judge.compare.%d", i)
		switch {
		case !slices.Contains(fl.Methods(), name):
			c.Require(false, path, "is %q; allowed: %v", name, fl.Methods())
			continue
		case name == run.Algorithm.Kind:
			c.Require(false, path, "is %s, the run's own method; allowed: another one", name)
			continue
		case slices.Index(run.Judge.Compare, name) < i:
			c.Require(false, path, "names %s a second time; allowed: once", name)
			continue
		}
		for _, check := range checks {
			for _, f := range check(Variant(run, name)) {
				c.Require(own[f.Path+f.Message], path, "is %s, which this file cannot train: %s %s", name, f.Path, f.Message)
			}
		}
	}
	return c.Faults()
}

// Beside prepares the same run with a method that it is compared with, on the same data.
// Close it after use.
func (s *Simulation) Beside(method string) (*Simulation, error) {
	other, err := NewOn(Variant(s.asked, method), s.given, nil)
	if err != nil {
		return nil, fmt.Errorf("compare with %s: %w", method, err)
	}
	other.followed, other.digest = true, s.digest
	return other, nil
}

// Beside opens the folder of the run with another method, or makes it.
func (d *Directory) Beside(s *Simulation) (*Directory, error) {
	path := d.File(CompareFolder(s.asked.Algorithm.Kind))
	text, err := s.asked.Encode()
	if err != nil {
		return nil, err
	}
	var sub *Directory
	switch old, err := os.ReadFile(path + "/" + RunFile); {
	case errors.Is(err, fs.ErrNotExist):
		sub, err = CreateDirectory(path, text)
		if err != nil {
			return nil, err
		}
	case err != nil:
		return nil, fmt.Errorf("compare: %w", err)
	case !bytes.Equal(old, text):
		return nil, fmt.Errorf("%s holds a run of another run file; remove it to make the comparison again", path)
	default:
		if sub, err = lock(path); err != nil {
			return nil, err
		}
	}
	sub.Continue = d.Continue // one command goes on with both
	return sub, nil
}

// Against is how the finished run compares with a finished one beside it.
func (s *Simulation) Against(other *Simulation, res Result) (Comparison, error) {
	task := s.judgement.task
	c := Comparison{Algorithm: res.Algorithm, Figure: task.Main(), Metrics: res.Metrics}
	for i := range s.rounds.Participants {
		mine, theirs := s.judgement.answers[i], other.judgement.answers[i]
		if len(mine.Targets) == 0 || len(theirs.Targets) == 0 {
			continue
		}
		d, err := metrics.Difference(task, mine, theirs)
		if err != nil {
			return Comparison{}, fmt.Errorf("compare with %s: %w", res.Algorithm, err)
		}
		c.Participants = append(c.Participants, Compared{
			Name: cmp.Or(s.rounds.Participants[i].Name, fmt.Sprintf("client %d", i)), Examples: len(mine.Targets),
			Figure: s.judgement.figures[i].Main(task), Other: other.judgement.figures[i].Main(task),
			Difference: d, Verdict: verdict(d, task.LessIsBetter()),
		})
	}
	return c, nil
}

// verdict is what an interval says.
func verdict(d *metrics.Figure, lessIsBetter bool) string {
	if d == nil {
		return ""
	}
	above, below := d.Low != nil && *d.Low > event.Number(0), d.High != nil && *d.High < event.Number(0)
	switch {
	case above && !lessIsBetter || below && lessIsBetter:
		return VerdictBetter
	case above || below:
		return VerdictWorse
	}
	return VerdictUnclear
}
