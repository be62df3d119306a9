package clipping

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// comparable is the chapter's message: Online is not behind the best of the others by more
// than what the claims call equivalent, one point or a tenth of the error. The best one is
// that of the means, which speaks against Online.
func (b book) comparable(epsilon, moment float64, why string) study.Row {
	place := func(m method) row {
		if moment > 0 {
			return b.moved(m, epsilon)
		}
		return b.place(m, epsilon, 5)
	}
	c := claim{
		label: fmt.Sprintf("epsilon %v: Online over the best of the others", epsilon), a: place(online), why: why, side: above(-1),
		sentence: "chapter 3: performs comparably or better in the evaluated scenarios, given the same privacy requirements at a grid search level",
	}
	if b.task.lower {
		c.side = above(-10)
	}
	if moment > 0 {
		c.label += fmt.Sprintf(", the thesis's settings with momentum %v", moment)
	}
	var best group
	for _, m := range private[1:] {
		g, ok := b.best(place(m))
		if !ok || !b.complete(g.row) {
			if b.withoutFigure(m, epsilon, moment) {
				continue
			}
			return waiting(study.Row{Section: claimed, Label: c.label})
		}
		if best.cells == nil || b.task.better(g.mean(), best.mean()) {
			best, c.b = g, g.row
		}
	}
	return b.judge(c)
}

// withoutFigure says that a method has no settings of the thesis's that momentum could be
// tried with: its runs diverge there.
func (b book) withoutFigure(m method, epsilon, moment float64) bool {
	_, known := b.task.table(5).at(m, epsilon)
	return moment > 0 && !known
}

// finer are the same claims of whole grids with k = 9, of which the text says no more.
func (b book) finer(epsilon float64) (out []study.Row) {
	const same = "section 3.7: of the other granularities the reader will see the same trends"
	for _, c := range []struct {
		first, second method
		side          side
	}{{online, threshold, above(clearly)}, {online, quantile, above(clearly)}, {adamWOSM, online, side{0, 1}}} {
		out = append(out, b.judge(claim{
			label: fmt.Sprintf("epsilon %v: %s over %s, k = 9", epsilon, c.first, c.second), sentence: same,
			a: b.place(c.first, epsilon, 9), b: b.place(c.second, epsilon, 9), side: c.side,
		}))
	}
	return out
}

// smallest is between the two clips of the grid, 0.1 and 1, that part the very small ones
// from the others.
const smallest = 0.32

// smallClip is that a method's best clip is very small, by the best setting of every seed.
func (b book) smallClip(m method, epsilon float64) study.Row {
	place := b.place(m, epsilon, 5)
	r := study.Row{Section: claimed, Label: fmt.Sprintf("epsilon %v: best clip of %s", epsilon, m), Metric: "clip C"}
	groups := b.groups(place)
	var logs []float64
	for _, seed := range slices.Sorted(slices.Values(b.compared(place, groups))) {
		best := groups[0]
		for _, g := range groups {
			if g.has([]uint64{seed}) && (!best.has([]uint64{seed}) || b.task.better(g.over([]uint64{seed}), best.over([]uint64{seed}))) {
				best = g
			}
		}
		logs = append(logs, math.Log(best.setting.Clip))
	}
	if len(logs) == 0 {
		return waiting(r)
	}
	r.Sentence = "section 3.7, table 3.4: the optimal clipping threshold is very small in all competing strategies"
	r.Note = fmt.Sprintf("agrees: the whole 95 %% interval of the geometric mean over seeds below %v, between the grid's 0.1 and 1", smallest)
	r.Why = "We believe that the clip alone hardly matters: FixedThreshold does alike wherever step times clip is the same, and AdamWOSM divides by the clip, so that which of the small ones is best is chance. " + b.flat(place, groups)
	return times(lab.AtMost(r, logs, math.Log(smallest)))
}

// flat tells how far the next best clip is behind, in the mean over seeds: what a reason is
// tested by.
func (b book) flat(place row, groups []group) string {
	best, _ := b.bestCompared(place)
	var next group
	for _, g := range groups {
		if g.setting.Clip != best.setting.Clip && len(g.cells) == len(best.cells) && (next.cells == nil || b.task.better(g.mean(), next.mean())) {
			next = g
		}
	}
	if next.cells == nil {
		return "Tested by nothing but this."
	}
	return fmt.Sprintf("Tested by the grid: %s has %.1f, %s %.1f.", best.setting, best.mean(), next.setting, next.mean())
}

// times takes a row of logarithms to what they are of.
func times(r study.Row) study.Row {
	return lab.Measured(r, lab.Spread{Middle: math.Exp(float64(*r.Measured)), Low: math.Exp(float64(*r.Low)), High: math.Exp(float64(*r.High))})
}

// burdenMost is how many times as long a run may take that still has a minimal burden.
const burdenMost = 1.25

// burden is how long runs of Online take, over those of FixedThreshold on the same kernel,
// seed by seed: medians, since cells shared their machine with others.
func (b book) burden() study.Row {
	type made struct {
		seed   uint64
		kernel string
	}
	seconds := map[method]map[made][]float64{online: {}, threshold: {}}
	for k, c := range b.cells {
		if of := seconds[k.Method]; of != nil && k.Study == b.task.kind && k.Changed == b.changed && k.Arm == "" && k.Steps == b.task.steps() && c.Seconds > 0 {
			at := made{k.Seed, c.Kernel}
			of[at] = append(of[at], c.Seconds)
		}
	}
	logs, kinds := map[uint64][]float64{}, map[string][]float64{}
	for at, ours := range seconds[online] {
		if theirs := seconds[threshold][at]; len(theirs) > 0 {
			ratio := lab.Quantiles(ours).Middle / lab.Quantiles(theirs).Middle
			logs[at.seed] = append(logs[at.seed], math.Log(ratio))
			kind := "a processor"
			if strings.HasPrefix(at.kernel, "cuda") {
				kind = "a GPU"
			}
			kinds[kind] = append(kinds[kind], ratio)
		}
	}
	r := study.Row{Section: claimed, Label: "seconds of a run, Online over FixedThreshold", Metric: "ratio"}
	if len(logs) == 0 {
		return waiting(r)
	}
	var values []float64
	for _, seed := range slices.Sorted(maps.Keys(logs)) {
		slices.Sort(logs[seed])
		values = append(values, lab.MeanAndDeviation(logs[seed]).Middle)
	}
	r.Sentence = "section 3.8: the additional computational burden is minimal"
	r.Note = fmt.Sprintf("agrees: the whole 95 %% interval of the geometric mean over seeds below %v; medians of cells by kernel, which shared their machine with others; ours also count the signs without noise, for the rows below", burdenMost)
	r.Why = "We believe that the times tell little, since machines were shared, and that the second sum of gradients counts on a GPU, whose steps are short. Tested by the cells' own times:"
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		r.Why += fmt.Sprintf(" on %s %.2f;", kind, lab.Quantiles(kinds[kind]).Middle)
	}
	r.Why = strings.TrimSuffix(r.Why, ";") + "."
	return times(lab.AtMost(r, values, math.Log(burdenMost)))
}

// unknown is a sentence that no cell can be held against, with the reason.
func unknown(sentence, reason string) study.Row {
	return study.Row{Section: claimed, Label: sentence, Metric: "not measured", Verdict: study.Incomparable, Note: reason}
}

// unknowns are the sentences of the chapter that nothing computed can be held against.
func (t task) unknowns() []study.Row {
	rows := []study.Row{
		unknown("tables 3.2 to 3.4 and figures 3.4 to 3.6, k = 7", "the text prints the best settings of k = 7, but no figures, and no cell of k = 7 was computed: claims are held against k = 5, of which it says the same"),
	}
	if !t.whole {
		rows = append(rows,
			unknown("section 3.7: the same trends with k = 9", "no cell of k = 9 was computed: 81 runs of FixedThreshold alone, at every epsilon and seed"),
			unknown("section 3.7: most configurations converge in 10 epochs", "the settings that do best were computed, not the grids"))
	} else {
		rows = append(rows, unknown("section 3.7: most configurations converge in 10 epochs", "10 epochs of our texts are a tenth of the thesis's steps"))
	}
	if t.apart {
		rows = append(rows, unknown("section 3.6: the sign is more robust to noise than equation 3.19, and less dependent on rho_c", "equation 3.19 is no rule of this program: the rows on rates 0.001 and 0.01 show the sign's own dependence alone"))
	}
	return rows
}
