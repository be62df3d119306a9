package clipping

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

const claimed = "Claims of the text"

// claim is a sentence of the thesis with the difference that decides on it.
type claim struct {
	label    string
	sentence string
	a, b     row // a's advantage over b
	agrees   string
	holds    func(advantage lab.Spread) bool
}

// judge holds a claim against the best cells. One whose cells are not all there waits.
func (b book) judge(c claim) study.Row {
	unit := "points"
	if b.task.lower {
		unit = "% less error"
	}
	r := study.Row{Section: claimed, Label: c.label, Metric: "advantage", Unit: unit, Note: "agrees: " + c.agrees}
	first, okA := b.best(c.a)
	second, okB := b.best(c.b)
	if okA && okB && b.complete(c.a) && b.complete(c.b) {
		if s, ok := b.task.advantage(first, second); ok {
			r.Sentence = c.sentence
			r.Note += fmt.Sprintf("; %s against %s", first.setting, second.setting)
			return lab.Claim(r, s, c.holds(s))
		}
	}
	return waiting(r)
}

// waiting is a claim whose cells are not finished.
func waiting(r study.Row) study.Row {
	r.Verdict, r.Note = study.NoNumber, ""
	return r
}

// claimRows are the claims that can be judged; the others are counted.
func (b book) claimRows() (judged []study.Row, waits int) {
	for _, r := range b.task.claims(b) {
		if r.Measured == nil {
			waits++
			continue
		}
		judged = append(judged, r)
	}
	return judged, waits
}

func above(bound float64) func(lab.Spread) bool {
	return func(s lab.Spread) bool { return s.Middle >= bound }
}

func below(bound float64) func(lab.Spread) bool {
	return func(s lab.Spread) bool { return s.Middle <= bound }
}

func within(bound float64) func(lab.Spread) bool {
	return func(s lab.Spread) bool { return math.Abs(s.Middle) <= bound }
}

// clearly is the least advantage that counts as one: seeds spread by half a point.
const clearly = 0.5

// lead is a claim that a method is clearly ahead of another, each with its grid's budget.
func (b book) lead(sentence string, epsilon float64, first, second method, least float64, unit string) claim {
	return claim{
		label: fmt.Sprintf("epsilon %v: %s over %s", epsilon, first, second), sentence: sentence,
		a: b.place(first, epsilon, 5), b: b.place(second, epsilon, 5),
		agrees: fmt.Sprintf("at least %v %s", least, unit), holds: above(least),
	}
}

// digitClaims are those of section 3.7 on MNIST.
func digitClaims(b book) (out []study.Row) {
	last := b.task.epsilons[len(b.task.epsilons)-1]
	for _, epsilon := range b.task.epsilons {
		out = append(out, b.judge(claim{
			label: fmt.Sprintf("epsilon %v: Online over AdamWOSM", epsilon), sentence: "section 3.7: roughly equivalent in this experiment",
			a: b.place(online, epsilon, 5), b: b.place(adamWOSM, epsilon, 5), agrees: "at most 1 point to either side", holds: within(1),
		}))
		const lower = "section 3.7: the results for FixedThreshold and FixedQuantile are consistently lower"
		out = append(out, b.judge(b.lead(lower, epsilon, online, threshold, clearly, "points")), b.judge(b.lead(lower, epsilon, online, quantile, clearly, "points")))
		out = append(out, b.judge(claim{
			label: fmt.Sprintf("epsilon %v: Online over FixedThreshold, one run's budget each", epsilon), sentence: "section 3.7: most likely due to both strategies needing a larger grid search",
			a: row{method: online, epsilon: epsilon, runs: 1, steps: b.task.steps()}, b: row{method: threshold, epsilon: epsilon, runs: 1, steps: b.task.steps()},
			agrees: "at most 0.5 points are left", holds: below(clearly),
		}))
		out = append(out, b.judge(claim{
			label: fmt.Sprintf("epsilon %v: FixedQuantile over FixedThreshold", epsilon), sentence: "section 3.7: FixedQuantile does not seem to show better results compared to fixing the clipping threshold",
			a: b.place(quantile, epsilon, 5), b: b.place(threshold, epsilon, 5), agrees: "at most 0.5 points", holds: below(clearly),
		}))
		out = append(out, b.searchNothing(epsilon))
	}
	out = append(out, b.judge(b.lead("section 3.7: Online shows better results when the privacy requirements are relaxed", last, online, adamWOSM, clearly, "points")))
	return append(out, b.granularity("points")...)
}

// searchNothing is the comparison that the thesis lacks.
func (b book) searchNothing(epsilon float64) study.Row {
	r := b.judge(claim{
		label: fmt.Sprintf("epsilon %v: Online over a given clip of 0.1, 5 runs each", epsilon), sentence: "-",
		a: b.place(online, epsilon, 5), b: row{method: threshold, epsilon: epsilon, runs: runsOf(online, 5), steps: b.task.steps()},
		agrees: "", holds: above(clearly),
	})
	r.Sentence, r.Verdict = "", study.NoNumber
	if r.Measured != nil {
		r.Note = "not in the thesis: what is left of Online's lead where nobody searches for a clip"
	}
	return r
}

// granularity is that a finer grid costs methods of two parameters more: at least half of
// what it costs in the thesis's tables, where it does.
func (b book) granularity(unit string) (out []study.Row) {
	for _, epsilon := range b.task.epsilons {
		for _, m := range []method{threshold, quantile} {
			coarse, ok5 := b.task.table(5).at(m, epsilon)
			fine, ok9 := b.task.table(9).at(m, epsilon)
			least := coarse.Figure - fine.Figure
			if b.task.lower {
				least = 100 * (1 - coarse.Figure/fine.Figure)
			}
			if !ok5 || !ok9 || least <= 0 {
				continue
			}
			out = append(out, b.judge(claim{
				label:    fmt.Sprintf("epsilon %v: %s, k = 5 over k = 9", epsilon, m),
				sentence: "tables 3.8 to 3.13: more values a parameter are worse for methods of two parameters",
				a:        b.place(m, epsilon, 5), b: b.place(m, epsilon, 9),
				agrees: fmt.Sprintf("at least %.2g %s, half of the tables'", least/2, unit), holds: above(least / 2),
			}))
		}
	}
	return out
}

// clothesClaims are those of section 3.7 on the autoencoder.
func clothesClaims(b book) (out []study.Row) {
	const least = 10 // per cent of the error
	for _, epsilon := range b.task.epsilons {
		for _, m := range private[1:] {
			if m == quantile && epsilon == 1 {
				continue // diverges, by the thesis
			}
			out = append(out, b.judge(b.lead("section 3.7: Online seems to show better results", epsilon, online, m, least, "% less error")))
		}
		if epsilon == 1 {
			out = append(out, b.divergence(epsilon))
			continue
		}
		const second = "section 3.7: for epsilon 2, 3 and 4 FixedQuantile shows the second best results"
		out = append(out, b.judge(b.lead(second, epsilon, quantile, threshold, 0, "% less error")), b.judge(b.lead(second, epsilon, quantile, adamWOSM, 0, "% less error")))
	}
	return append(out, b.granularity("% less error")...)
}

// learnedNothing is the figure from which on a model is no better than one grey level for
// all pixels of Fashion-MNIST (100 times their variance, 12.5).
const learnedNothing = 12

func (b book) divergence(epsilon float64) study.Row {
	r := study.Row{Section: claimed, Label: fmt.Sprintf("epsilon %v: FixedQuantile", epsilon), Metric: "figure", Unit: b.task.unit, Note: fmt.Sprintf("agrees: %v or more, where nothing is learned", learnedNothing)}
	g, ok := b.best(b.place(quantile, epsilon, 5))
	if !ok || !b.complete(g.row) {
		return waiting(r)
	}
	r.Sentence = "section 3.7: for epsilon = 1 the FixedQuantile strategy does not converge with any of the available hyperparameters"
	r.Note += fmt.Sprintf("; best of %d of %d cells", len(b.groups(g.row)), runsOf(quantile, 5))
	return lab.Claim(r, g.spread(), g.mean() >= learnedNothing)
}

// newsClaims are those of section 3.7 on AG News.
func newsClaims(b book) (out []study.Row) {
	for _, epsilon := range b.task.epsilons {
		out = append(out, b.judge(claim{
			label: fmt.Sprintf("epsilon %v: AdamWOSM over Online", epsilon), sentence: "section 3.7: AdamWOSM performs the best, with Online being marginally below",
			a: b.place(adamWOSM, epsilon, 5), b: b.place(online, epsilon, 5), agrees: "from 0 to 1 point",
			holds: func(s lab.Spread) bool { return s.Middle >= 0 && s.Middle <= 1 },
		}))
		const lower = "tables 3.10 and 3.13: FixedThreshold and FixedQuantile are below Online"
		out = append(out, b.judge(b.lead(lower, epsilon, online, threshold, clearly, "points")), b.judge(b.lead(lower, epsilon, online, quantile, clearly, "points")))
	}
	return append(out, b.granularity("points")...)
}
