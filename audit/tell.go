package audit

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
)

// Line is one epsilon of an audit, and what it is.
type Line struct {
	Name    string
	Epsilon event.Number
	Note    string
}

// Telling is what an audit of a run's epsilon says to people, on a terminal or a page.
type Telling struct {
	Command, Title string
	Played         string // what was done, and how the guesses went
	Privacy        event.Statement
	Lines          []Line
	Verdict        string
	Holds          string // what bounds hold with, and what they would have found; empty: nothing to add
	Assumes        []string
	Tests          string // what a result is about, and what not
	NotTried       []string
	Charts         []study.Chart
}

// Head is what stands above the epsilons: their terms.
func (t Telling) Head() string {
	return fmt.Sprintf("epsilon at delta %.3g for one %s, %s", float64(t.Privacy.Delta), t.Privacy.Unit, t.Privacy.Relation)
}

// Page shows an audit of the run of a name, made by a command.
func (t Telling) Page(name, command, version string) study.Study {
	s := study.Study{
		ID: t.Command, Title: fmt.Sprintf(t.Title, name), Scale: "one audit", Seeds: 1, Version: version, Kernel: model.Kernel(), Command: command,
		Intro: []string{
			t.Played,
			fmt.Sprintf("Verdict (claim %s, unit %s, relation %s, delta %.3g): %s.", t.Privacy.Claim, t.Privacy.Unit, t.Privacy.Relation, float64(t.Privacy.Delta), t.Verdict),
		},
		Charts: t.Charts,
	}
	if t.Holds != "" {
		s.Intro = append(s.Intro, t.Holds)
	}
	say := func(what string, lines ...string) {
		for _, line := range lines {
			s.Caveats = append(s.Caveats, what+line+".")
		}
	}
	say("", t.Tests)
	say("Assumed: ", t.Assumes...)
	say("Not tried: ", t.NotTried...)
	say("Not covered by the claim: ", t.Privacy.NotCovered...)
	for _, line := range t.Lines {
		s.Rows = append(s.Rows, study.Row{
			Section: fmt.Sprintf("E%s (claim %s)", t.Head()[1:], t.Privacy.Claim), Label: line.Name, Metric: "epsilon", Note: line.Note,
			Settings: map[string]any{"what": line.Name}, Measured: &line.Epsilon,
		})
	}
	return s
}

// The lines that several audits have.
func claimed(p event.Statement) Line {
	return Line{fmt.Sprintf("claimed (%s)", p.Claim), p.Epsilon, "by the run's own accountant, for what was charged"}
}

const programAndSettings = "This tests the program and these settings, not a model that was trained before"

// Tell says what one training revealed.
func (r *OneRun) Tell() Telling {
	t := Telling{
		Command: "onerun", Title: "What does one training of %s reveal of its canaries?",
		Played: fmt.Sprintf("One training of %s, %s in all, with %d %s as canaries, %d of them in; %s noise, rate %.4g, noise multiplier %.4g. The attacker guessed %d of %d right, by the %s.",
			prose.Counted(r.Rounds, "round", "rounds"), prose.Counted(r.Steps, "noised step", "noised steps"), r.Canaries, r.Kind, r.In, r.Noise, r.Rate, r.Multiplier, r.Right, r.Guesses, r.Score),
		Privacy: r.Privacy,
		Lines: []Line{
			claimed(r.Privacy),
			{"at least", r.AtLeast, fmt.Sprintf("with %.4g %% confidence", 100*r.Confidence)},
			{"ceiling", r.Ceiling, fmt.Sprintf("what %d right guesses of %d would have shown", r.Guesses, r.Guesses)},
		},
		Verdict: r.Verdict, Assumes: r.Assumes, Tests: programAndSettings + ". The model with the canaries is thrown away",
		NotTried: []string{"many trainings (coterie audit canary), and every step's noise against its curve (coterie audit mechanism)", "replace-one, which needs pairs of canaries", "what is outside the training: the network, the ledger, timing"},
	}
	if r.Kind == CanaryExamples {
		t.NotTried = append([]string{"an attacker who sees every noised step (--canaries-are gradients)"}, t.NotTried...)
	} else {
		t.NotTried = append([]string{"an attacker who sees the returned model alone (--canaries-are examples)"}, t.NotTried...)
	}
	t.Charts = append(r.reach(), found(r.in, r.out, r.Privacy)...)
	return t
}

// reach shows what every number of right guesses would have proved.
func (r *OneRun) reach() []study.Chart {
	bound := study.Series{Name: "bound, by right guesses"}
	every := max(1, r.Guesses/100)
	for v := r.Guesses / 2; v <= r.Guesses; v++ {
		if (r.Guesses-v)%every != 0 && v != r.Right {
			continue
		}
		least, err := OneRunBound(r.Canaries, r.Guesses, v, float64(r.Privacy.Delta), r.Confidence)
		if err != nil {
			return nil // what made the audit's own bound makes these
		}
		bound.Points = append(bound.Points, place(float64(v), least))
	}
	return []study.Chart{{
		Title: "What so many right guesses prove", XTitle: "right guesses of " + fmt.Sprint(r.Guesses), YTitle: "epsilon, at least",
		Note: fmt.Sprintf("The right end is the ceiling, %.4g: no result of this audit could have shown more. Epsilons are at delta %.3g for one %s, %s; the claim is %s.",
			float64(r.Ceiling), float64(r.Privacy.Delta), r.Privacy.Unit, r.Privacy.Relation, r.Privacy.Claim),
		Series: []study.Series{
			bound,
			{Name: "this audit", Points: []study.Point{place(float64(r.Right), float64(r.AtLeast))}},
			{Name: "claimed", Points: []study.Point{place(float64(r.Guesses/2), float64(r.Privacy.Epsilon)), place(float64(r.Guesses), float64(r.Privacy.Epsilon))}},
		},
	}}
}

// Tell says what a hostile server learned.
func (c *Canary) Tell() Telling {
	return Telling{
		Command: "canary", Title: "Does a silo of %s leak more than it claims?",
		Played: fmt.Sprintf("%d runs with the canary and %d without, each of %s of %s; %s noise, rate %.4g, noise multiplier %.4g. The server guessed %d of %d right.",
			c.Runs, c.Runs, prose.Counted(c.Rounds, "round", "rounds"), prose.Counted(c.Steps, "noised step", "noised steps"), c.Noise, c.Rate, c.Multiplier, c.Right, c.Guesses),
		Privacy: c.Privacy, Lines: c.lines(), Verdict: c.Verdict, Holds: c.holds("Both bounds hold"), Assumes: c.Assumes, Tests: programAndSettings,
		NotTried: []string{"other methods than fedavg and other models than linear ones", "other relations than add-remove", "another row than this canary", "the network, the ledger, timing, a batch seed that is known to others"},
		Charts:   found(c.in, c.out, c.Privacy),
	}
}

func (c *Canary) lines() []Line {
	return []Line{
		claimed(c.Privacy),
		{"tight", c.Tight, "the least that could be claimed for the same"},
		{"at least, through the mechanism's curve", c.AtLeast, fmt.Sprintf("the noise is at most %.3f of what was charged", float64(c.NoiseAtMost))},
		{"at least, curve-free", c.CurveFree, ""},
	}
}

func (c *Canary) holds(all string) string {
	return fmt.Sprintf("%s together with %.4g %% confidence. With 0.8 of the noise this audit exceeds the claim with probability %.4f; as charged, with %.1g at most.", all, 100*c.Confidence, c.Power, c.FalseAlarm)
}

// Tell says what an attacker learned who saw every step.
func (a *GradientAudit) Tell() Telling {
	lines := append(a.lines(), Line{
		fmt.Sprintf("at least, of step %d alone", a.Step), a.StepAtLeast,
		fmt.Sprintf("its noise, the least of all, is at most %.3f of what was charged", float64(a.StepNoiseAtMost)),
	})
	return Telling{
		Command: "mechanism", Title: "Do the noised steps of %s keep what they are charged for?",
		Played: fmt.Sprintf("%d canaries were in and %d out, in %s; %s noise, rate %.4g, noise multiplier %.4g. The attacker guessed %d of %d right.",
			a.Runs, a.Runs, prose.Counted(a.AllSteps, "noised step", "noised steps"), a.Noise, a.Rate, a.Multiplier, a.Right, a.Guesses),
		Privacy: a.Privacy, Lines: lines, Verdict: a.Verdict, Holds: a.holds("All three bounds hold"), Assumes: a.Assumes, Tests: programAndSettings,
		NotTried: []string{"how gradients are computed, and who trains on what: there are no data and no model", "what is outside the steps: the network, the ledger, timing"},
		Charts:   append(a.noise(), found(a.in, a.out, a.Privacy)...),
	}
}

// noise shows every step's.
func (a *GradientAudit) noise() []study.Chart {
	seen := study.Series{Name: "a step's noise"}
	for i, n := range a.steps {
		seen.Points = append(seen.Points, study.Point{X: float64(i + 1), Y: n.share, Low: n.low, High: n.high})
	}
	return []study.Chart{{
		Title: "The noise of every step", XTitle: "step", YTitle: "share of the noise that was charged",
		Note:   "Measured where no canary is. Intervals hold for all steps together, with this bound's share of what may go wrong. An interval below 1 shows a step with too little noise.",
		Series: []study.Series{seen, {Name: "as charged", Points: []study.Point{place(1, 1), place(float64(max(2, len(a.steps))), 1)}}},
	}}
}

// found is the curve of canaries found, below what the claim allows.
func found(in, out []float64, claim event.Statement) []study.Chart {
	if len(in) == 0 || len(out) == 0 {
		return nil
	}
	in, out = slices.Sorted(slices.Values(in)), slices.Sorted(slices.Values(out))
	share := func(sorted []float64, above float64) float64 {
		at, _ := slices.BinarySearchFunc(sorted, above, func(v, t float64) int {
			if v <= t {
				return -1
			}
			return 1
		})
		return float64(len(sorted)-at) / float64(len(sorted))
	}
	roc, allowed, guess := study.Series{Name: "this attack"}, study.Series{Name: "what the claim allows at most"}, study.Series{Name: "guessing"}
	for wrong := 1; ; wrong = max(wrong+1, wrong*5/4) {
		x := float64(min(wrong, len(out))) / float64(len(out))
		if wrong >= len(out) {
			roc.Points = append(roc.Points, place(1, 1))
		} else if y := share(in, out[len(out)-1-wrong]); y > 0 {
			roc.Points = append(roc.Points, place(x, y))
		}
		allowed.Points = append(allowed.Points, place(x, min(1, math.Exp(float64(claim.Epsilon))*x+float64(claim.Delta))))
		guess.Points = append(guess.Points, place(x, x))
		if wrong >= len(out) {
			break
		}
	}
	return []study.Chart{{
		Title: "Canaries found", XTitle: "canaries that are out, taken for in", YTitle: "canaries that are in, found", LogX: true, LogY: true,
		Note: "Both axes have logarithms. A curve above what the claim allows would speak against it; whether that is chance, the bounds say.", Series: []study.Series{roc, allowed, guess},
	}}
}

func place(x, y float64) study.Point { return study.Point{X: x, Y: y, Low: y, High: y} }
