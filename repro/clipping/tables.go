package clipping

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// study lays out what is finished: the cells of the scale, where it has shorter runs than
// the thesis, and all that is known of runs as long as the thesis's.
func (t task) study(l *lab.Lab, own, whole book, keys []key) study.Study {
	s := study.Study{
		Intro: []string{
			t.intro + " Four ways to clip are compared: Online (OSO-DPSGD) learns clip and step from noised gradients; FixedThreshold keeps the clip; FixedQuantile follows a quantile of the norms; AdamWOSM divides Adam's first moment by the noise.",
			"A budget is the grid's, not the run's: with k values a parameter, Online and AdamWOSM have k runs to pay for, FixedThreshold k squared, FixedQuantile 5k. The thesis's message: who has one parameter less to search for has less noise.",
		},
		Caveats: append(privacyCaveats(), t.differ...),
	}
	if own.task.steps() != t.steps() {
		s.Caveats = append(s.Caveats, fmt.Sprintf("The cells of this scale make %d steps instead of %d, with the noise that keeps the same budgets then: they show the way, not the tables.", own.task.steps(), t.steps()))
		s.Rows = append(s.Rows, own.scaleRows(l.Scale)...)
	}
	s.Caveats = append(s.Caveats, lab.Progress(own.cells, keys))
	s.Caveats = append(s.Caveats, whole.drawnAlike()...)
	claims, waits := whole.claimRows()
	if waits > 0 {
		s.Caveats = append(s.Caveats, fmt.Sprintf("%d of %d claims of the text wait for cells of full scale that are not finished.", waits, waits+len(claims)))
	}
	s.Rows = slices.Concat(s.Rows, whole.tableRows(5), whole.momentumRows(), whole.tableRows(9), whole.aloneRows(), claims, whole.armRows(), whole.signRows())
	s.Charts = slices.Concat(whole.figureCharts(5), whole.figureCharts(9), whole.pathCharts())
	return s
}

// privacyCaveats say what every epsilon of the studies is.
func privacyCaveats() []string {
	return []string{
		fmt.Sprintf("Unit: example, relation: add-remove, claim: proved for Poisson batches, delta %v. The thesis states no delta, draws batches of a fixed size and accounts for them as Poisson samples. Epsilon is of all runs of a grid together, by the Rényi accountant, unless a row says that it is of one run.", delta),
		"Not covered: which cell is best is read off the test set, as in the thesis, and so is the best judgement; seeds are not charged.",
		"Figures are of the last model; the thesis's are of the best of about 24 judgements on the test set. Notes have the best of ours, out of 10.",
		fmt.Sprintf("A figure of the thesis agrees where a mean of %d seeds with its deviation would lie around our mean in 95 of 100 studies (Welch's interval of two means: the notes have half of it); one seed is not judged, nor an interval that is as wide as the figure.", seedsOfThesis),
		"The optimiser is plain gradient descent unless a row says momentum: the thesis does not name its own, and its figures come out with momentum 0.9.",
	}
}

// drawnAlike says of how many cells a grid's budget is arithmetic alone.
func (b book) drawnAlike() []string {
	cells, grids := 0, 0
	for _, r := range b.places() {
		if n := b.alike(r); n > 0 {
			cells, grids = cells+n, grids+1
		}
	}
	if cells == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d finished cells of %d grids were made before every cell of a grid drew batches and noise of its own (17 November 2026): within a grid and a seed theirs are the same, and whoever saw two could take one from the other. That all of such a grid's runs together keep epsilon is arithmetic, not a guarantee; the notes of its rows say so. Each run for itself has the noise that it is charged for.", cells, grids)}
}

// place is a method's row of a table that shares the budget of a grid with k values.
func (b book) place(m method, epsilon float64, k int) row {
	return row{method: m, epsilon: epsilon, runs: runsOf(m, k), steps: b.task.steps()}
}

// scaleRows are the cells of a scale whose runs are shorter than the thesis's.
func (b book) scaleRows(scale string) (out []study.Row) {
	section := fmt.Sprintf("Scale %s: %d steps", scale, b.task.steps())
	for _, epsilon := range b.task.epsilons {
		for _, m := range private {
			if g, ok := b.best(b.place(m, epsilon, 5)); ok {
				r := b.shown(g, section)
				if f, ok := b.task.table(5).at(m, epsilon); ok {
					r.Paper, r.Verdict = lab.Number(f.Figure), study.Incomparable
				}
				out = append(out, r)
			}
		}
		out = append(out, b.givenClip(section, epsilon)...)
	}
	return out
}

// tableRows are one of the thesis's tables beside ours; none before a cell is finished.
func (b book) tableRows(k int) (out []study.Row) {
	t := b.task.table(k)
	section := fmt.Sprintf("Table %s: k = %d, budgets of whole grids", t.Table, k)
	finished := false
	for _, epsilon := range b.task.epsilons {
		for _, m := range private {
			f, known := t.at(m, epsilon)
			g, ok := b.best(b.place(m, epsilon, k))
			if !ok {
				if known {
					out = append(out, study.Row{Section: section, Label: label(m, epsilon, ""), Metric: "figure", Unit: b.task.unit, Paper: lab.Number(f.Figure), Verdict: study.Incomparable, Note: "not finished yet"})
				}
				continue
			}
			finished = true
			r := b.shown(g, section)
			r.Note = fmt.Sprintf("best of %d of the grid's %d: %s", len(b.groups(g.row)), runsOf(m, k), r.Note)
			if r = b.beside(r, g, f, known, b.task.apartFrom); known && !b.complete(g.row) {
				r.Verdict, r.Why, r.Note = study.Incomparable, "", "not all are finished; "+r.Note
			}
			out = append(out, r)
		}
		if k == 5 {
			out = append(out, b.givenClip(section, epsilon)...)
		}
	}
	if !finished {
		return nil
	}
	if g, ok := b.best(row{method: noDP, steps: b.task.steps()}); ok && k == 5 {
		r := b.shown(g, "Without privacy")
		r.Label, r.Note = "NoDP", "the thesis names only its rho: 0.003162; "+r.Note
		out = append(out, r)
	}
	return out
}

// givenClip is what the thesis's tables lack: a clip that is not searched for either, with
// as many runs as Online has.
func (b book) givenClip(section string, epsilon float64) []study.Row {
	g, ok := b.best(row{method: threshold, epsilon: epsilon, runs: runsOf(online, 5), steps: b.task.steps()})
	if !ok {
		return nil
	}
	r := b.shown(g, beyond)
	if !b.whole {
		r.Section = section
	}
	r.Label = label("FixedThreshold, C 0.1 given", epsilon, "")
	r.Note = "not in the thesis: the budget of 5 runs, like Online's; " + r.Note
	return []study.Row{r}
}

// momentumRows are the thesis's own best settings, with the momentum that it probably had.
func (b book) momentumRows() (out []study.Row) {
	t := b.task.table(5)
	for _, epsilon := range b.task.epsilons {
		for _, m := range private {
			place := b.place(m, epsilon, 5)
			place.momentum = momentum
			g, ok := b.best(place)
			f, known := t.at(m, epsilon)
			if !ok || !known {
				continue
			}
			r := b.shown(g, fmt.Sprintf("Table %s: the thesis's settings with momentum %v", t.Table, momentum))
			out = append(out, b.beside(r, g, f, true, b.task.apartMoved))
		}
	}
	return out
}

// aloneRows are with the budget of a single run: what an oracle for the settings would give.
func (b book) aloneRows() (out []study.Row) {
	for _, epsilon := range b.task.epsilons {
		for _, m := range private {
			if g, ok := b.best(row{method: m, epsilon: epsilon, runs: 1, steps: b.task.steps()}); ok {
				out = append(out, b.shown(g, "If searching cost nothing: the budget of one run"))
			}
		}
	}
	return out
}

// shown is a group as a row that the paper has no number for.
func (b book) shown(g group, section string) study.Row {
	note := g.setting.String()
	if noise := g.first().Value.Noise; noise > 0 {
		note += fmt.Sprintf("; S %.3f", float64(noise))
	}
	note += fmt.Sprintf("; best judgement %.4g", g.best())
	if n := b.alike(g.row); n > 0 {
		note += fmt.Sprintf("; %d cells of this grid share their draws", n)
	}
	if other, ok := b.task.other[budget{g.row.method, g.row.epsilon, g.row.runs}]; ok && g.row.arm == "" && g.row.momentum == 0 && b.whole {
		note += fmt.Sprintf("; another implementation: %v", other)
	}
	return lab.Measured(study.Row{
		Section: section, Label: label(g.row.method, g.row.epsilon, ""), Metric: "figure", Unit: b.task.unit, Verdict: study.NoNumber, Note: note,
		Settings: map[string]any{"epsilon": g.row.epsilon, "runs": g.row.runs, "step": g.setting.Step, "clip": g.setting.Clip, "quantile": g.setting.Quantile, "momentum": g.row.momentum, "seeds": len(g.cells)},
	}, g.spread())
}

// seedsOfThesis is how many its means and deviations are over.
const seedsOfThesis = 5

// beside puts the thesis's figure to ours. They agree where a mean like the thesis's, with
// its own deviation, would lie around ours in 95 of 100 studies; one seed has no interval,
// and an interval as wide as the figure tells nothing.
// Where the data are others than the thesis's, there is no verdict.
func (b book) beside(r study.Row, g group, f figure, known bool, why string) study.Row {
	if !known {
		r.Note = "no number: the thesis's runs diverge; " + r.Note
		return r
	}
	r.Paper = lab.Number(f.Figure)
	if b.task.otherData {
		r.Verdict = study.Incomparable
		return r
	}
	values := g.figures()
	if len(values) < 2 {
		r.Verdict, r.Note = study.Incomparable, "one seed has no interval; "+r.Note
		return r
	}
	again := lab.Printed{Mean: f.Figure, Deviation: f.Deviation, Seeds: seedsOfThesis}.Again(values)
	half := again.High - again.Middle
	if half > f.Figure/2 { // anything would agree
		r.Verdict, r.Note = study.Incomparable, fmt.Sprintf("seeds do not tell: half of the interval, %.2g, is above half of the thesis's figure; %s", half, r.Note)
		return r
	}
	r.Note = fmt.Sprintf("agrees within %.2g; %s", half, r.Note)
	if r = lab.Judged(r, again.Low, again.High, f.Figure); r.Verdict == study.Differs {
		r.Why = why
	}
	return r
}

// label names a row by method, epsilon and more.
func label(m method, epsilon float64, more string) string {
	text := string(m)
	if epsilon > 0 {
		text = fmt.Sprintf("epsilon %v: %s", epsilon, text)
	}
	return strings.TrimSuffix(text+", "+more, ", ")
}
