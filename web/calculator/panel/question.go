// Package panel answers the calculator's questions: numbers, the privacy label and curves as parts of its page.
package panel

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/whatif"
)

// Question is a command line of `coterie account`: the page asks what the command would.
type Question struct {
	Command string      `json:"command"`
	Flags   [][2]string `json:"flags"` // name and value, in the order of the command line
	File    string      `json:"file"`  // what the file of the command silo holds
}

// siloFile is what the silos' file is called in the command line that is shown.
const siloFile = "silos.csv"

// Line is the command line that gives the same answer.
func (q Question) Line() string {
	words := []string{"coterie", "account", q.Command}
	for _, f := range q.Flags {
		words = append(words, "--"+f[0], quoted(f[1]))
	}
	if q.Command == "silo" {
		words = append(words, siloFile)
	}
	return strings.Join(words, " ")
}

// quoted is a word that a shell passes on as it is.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("+-._", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// with is the question with other values of flags.
func (q Question) with(name, value string) Question {
	q.Flags = slices.Clone(q.Flags)
	for i, f := range q.Flags {
		if f[0] == name {
			q.Flags[i][1] = value
			return q
		}
	}
	q.Flags = append(q.Flags, [2]string{name, value})
	return q
}

// found is an answer, and every silo's where there are some.
type found struct {
	whatif.Answer
	silos []account.SiloCost
}

// ask finds the answer.
func (q Question) ask() (a found, err error) {
	v := values{given: map[string]string{}}
	for _, f := range q.Flags {
		if _, twice := v.given[f[0]]; twice {
			return a, fmt.Errorf("--%s is given twice: leave one out", f[0])
		}
		v.given[f[0]] = f[1]
	}
	var answer func() (whatif.Answer, error)
	switch q.Command {
	case "dpsgd", "calibrate":
		answer = v.training(q.Command == "calibrate").Answer
	case "metric":
		plan := account.MetricPlan{
			Dimension: int(v.whole("dimension", 0)), NoiseMultiplier: v.number("noise-multiplier", 0), Releases: v.whole("releases", 0),
			Radius: v.number("radius", 0), Distance: v.number("distance", 0),
		}
		answer = func() (whatif.Answer, error) { return whatif.Metric(plan) }
	case "tuning":
		answer = v.tuning().Answer
	case "silo":
		method := account.Method(v.word("accountant", string(account.MethodBest)))
		answer = func() (_ whatif.Answer, err error) {
			plans, err := account.ReadSiloPlans(strings.NewReader(q.File))
			if err != nil {
				return whatif.Answer{}, err
			}
			var all whatif.Answer
			all, a.silos, err = whatif.Silos(method, plans...)
			return all, err
		}
	default:
		return a, fmt.Errorf("the page cannot ask %q; ask coterie account itself", q.Command)
	}
	if err := v.faults(); err != nil {
		return a, err
	}
	a.Answer, err = answer()
	return a, err
}

// values are a question's flags, read one by one.
type values struct {
	given map[string]string
	read  []string
	wrong []error
}

func (v *values) has(name string) bool { _, ok := v.given[name]; return ok }

func (v *values) word(name, absent string) string {
	v.read = append(v.read, name)
	if text, ok := v.given[name]; ok {
		return strings.TrimSpace(text)
	}
	return absent
}

func (v *values) number(name string, absent float64) float64 {
	text := v.word(name, "")
	if !v.has(name) {
		return absent
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		v.wrong = append(v.wrong, fmt.Errorf("%s = %q: want a number", name, text))
	}
	return x
}

func (v *values) whole(name string, absent int64) int64 {
	text := v.word(name, "")
	if !v.has(name) {
		return absent
	}
	x, err := strconv.ParseInt(text, 0, 64) // as flags are read: 0x10 is 16
	if err != nil {
		v.wrong = append(v.wrong, fmt.Errorf("%s = %q: want a whole number", name, text))
	}
	return x
}

// faults are values that cannot be read, and flags that nobody reads.
func (v *values) faults() error {
	for _, name := range slices.Sorted(maps.Keys(v.given)) {
		if !slices.Contains(v.read, name) {
			v.wrong = append(v.wrong, fmt.Errorf("--%s is not for this question: leave it out", name))
		}
	}
	return errors.Join(v.wrong...)
}

func (v *values) by() whatif.By {
	return whatif.By{Delta: v.number("delta", 0), Method: account.Method(v.word("accountant", string(account.MethodBest)))}
}

func (v *values) terms() account.Terms {
	return account.Terms{Unit: event.Unit(v.word("unit", string(event.UnitExample))), Relation: event.AddRemove, Claim: event.ClaimProved}
}

// training solves for epsilon, or for the one of noise, steps and rate that is left out.
func (v *values) training(calibrate bool) whatif.Training {
	q := whatif.Training{By: v.by(), Solve: whatif.Epsilon, Plan: account.Training{
		Terms: v.terms(), Trust: event.TrustLocal, Sampling: event.Poisson,
		Noise: v.number("noise", 0), Rate: v.number("rate", 0), Steps: v.whole("steps", 0),
	}}
	if !calibrate {
		return q
	}
	q.Target, q.Plan.Runs, q.Solve = v.number("epsilon", 0), 1, whatif.Rate
	switch {
	case !v.has("noise"):
		q.Solve = whatif.Noise
	case !v.has("steps"):
		q.Solve = whatif.Length
	}
	return q
}

func (v *values) tuning() whatif.Tuning {
	return whatif.Tuning{
		By: v.by(), Terms: v.terms(), Run: whatif.Steps{Noise: v.number("noise", 0), Rate: v.number("rate", 1), Times: v.whole("steps", 1)},
		Trials: event.Tuning{
			Distribution: v.word("distribution", event.TruncatedNegativeBinomial), Mean: v.number("mean-trials", 0),
			Eta: v.number("eta", 0), Trials: v.whole("trials", 0),
		},
	}
}
