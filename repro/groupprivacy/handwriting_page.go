package groupprivacy

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// book is what is finished of runs with one setting.
type book struct {
	cells   map[writing]writtenRecord
	changed func(HandwritingSet) string
	paper   handwritingFigures
}

// of are the finished cells of a place in the table, by seed, from the most rounds there are.
func (b book) of(s HandwritingSet, what task, loss string, nu float64) map[uint64]written {
	most, out := 0, map[uint64]written{}
	for k, c := range b.cells {
		if k.Set != s.Name || k.Task != what || k.Loss != loss || k.Nu != nu || k.Changed != b.changed(s) || k.Rounds < most {
			continue
		}
		if k.Rounds > most {
			most = k.Rounds
			clear(out)
		}
		out[k.Seed] = c.Value
	}
	return out
}

// accuracies are in the order of seeds.
func accuracies(cells map[uint64]written) []float64 {
	return lab.Pick(slices.Sorted(maps.Keys(cells)), func(seed uint64) float64 { return float64(cells[seed].Accuracy) })
}

// less is how much lower the accuracy of b is than a's, over the seeds that both have.
func less(a, b map[uint64]written) (out []float64) {
	for _, seed := range slices.Sorted(maps.Keys(a)) {
		if other, both := b[seed]; both {
			out = append(out, float64(a[seed].Accuracy-other.Accuracy))
		}
	}
	return out
}

// study lays out what is finished: the cells of the scale, where it is not full, and all that
// is known of full scale. Network is how many parameters table 3's has.
func (h handwritingStudy) study(finished map[writing]writtenRecord, keys []writing, network int) study.Study {
	s := study.Study{
		Intro: []string{
			"Every writer is a client; the pictures of about half of the writers are turned by 90 degrees, and two models of 1,206,590 parameters (62 classes; 1,199,882 for 10) may part the two. The paper's claim: accuracy holds up to nu = 3 and falls from 10 on.",
			"The table's RMSE is a loss that clients train with, of the outputs against a one-hot target: its figures, too, are accuracies, over all pictures of the held-out writers, each writer under its best model.",
			"The ceiling is the same network trained on all writers' pictures together, none of them turned, without noise and without a federation, and judged on the same held-out writers: 10 passes in batches of 50, step 0.01, momentum 0.9.",
		},
		Caveats: []string{
			"The small network (11,738 parameters) is not the papers': it shows what noise does over 300 rounds.",
			"n/nu is no protection in theory here: at nu = 10 a single release loses 120,659 at its radius (unit: neighbourhood, relation: metric, claim: heuristic). The papers look at one attack instead: coterie reproduce dlg.",
			"UNIPEN (244 writers, 62 classes) and MNIST by writer (539 writers, 10 classes) stand in for FEMNIST: levels of accuracy cannot be compared, only how they fall. Ink is light on black.",
			lab.Progress(finished, keys),
		},
	}
	seen := map[string]bool{}
	for _, k := range keys {
		if k.Task == federated && !seen[k.Set] {
			seen[k.Set] = true
			s.Caveats = append(s.Caveats, fmt.Sprintf("%s at this scale: %d rounds of %d clients. The paper does not state its own.", k.Set, k.Rounds, k.Clients))
		}
	}
	full := book{finished, func(HandwritingSet) string { return strings.Join(h.l.Set, " ") }, h.paper}
	if h.l.Scale != lab.Full {
		own := book{finished, h.changed, h.paper}
		for _, set := range h.sets {
			if h.changed(set) == full.changed(set) {
				continue // it is the full one
			}
			for _, loss := range h.losses {
				own.table(&s, "Scale "+h.l.Scale+": ", set, loss, h.noise(set))
			}
		}
	}
	s.Rows = slices.Concat(s.Rows, full.claims(), leakageRows(network))
	for _, set := range append(slices.Clone(HandwritingSets), SmallHandwriting) {
		for _, loss := range []string{"cross-entropy", "rmse"} {
			full.table(&s, "Table 2: ", set, loss, full.noise(set, loss))
		}
		full.ceilings(&s, set)
	}
	return s
}

// noise is what a set has finished cells of.
func (b book) noise(s HandwritingSet, loss string) (out []float64) {
	for k := range b.cells {
		if k.Set == s.Name && k.Task == federated && k.Loss == loss && k.Changed == b.changed(s) && !slices.Contains(out, k.Nu) {
			out = append(out, k.Nu)
		}
	}
	slices.Sort(out)
	return out
}

// table is one column of table 2 on one set, with its charts; nothing before a cell of it is
// finished.
func (b book) table(s *study.Study, where string, set HandwritingSet, loss string, noise []float64) {
	about := fmt.Sprintf("%s%s, trained with %s", where, set.Name, loss)
	paper := b.paper.accuracies(loss)
	ours, theirs := study.Series{Name: "ours"}, study.Series{Name: "FEMNIST", Paper: true} // titles name the set: the page has eight colours
	curves := study.Chart{
		Title: about + ": loss by round", XTitle: "round", YTitle: "validation cross entropy",
		Note: "held-out writers, whatever they train with; mean and 95 % interval over seeds",
	}
	base := b.of(set, federated, loss, 0)
	for _, nu := range noise {
		cells := b.of(set, federated, loss, nu)
		if len(cells) == 0 {
			continue
		}
		q := lab.MeanAndDeviation(accuracies(cells))
		s.Rows = append(s.Rows, writtenRows(about, set.Name, loss, nu, q, base, cells, paper)...)
		ours.Points = append(ours.Points, q.At(nu))
		if p, ok := paper[nu]; ok {
			theirs.Points = append(theirs.Points, lab.Exactly(p).At(nu))
		}
		if c := curveOf(fmt.Sprintf("nu %v", nu), cells); len(c.Points) > 0 && (nu == 0 || nu >= 1) && nu != 5 { // less noise shows nothing more, nor does 5: the page has eight colours
			curves.Series = append(curves.Series, c)
		}
	}
	if len(ours.Points) == 0 {
		return
	}
	charts := []study.Chart{{
		Title: about + ": accuracy by noise", XTitle: "noise multiplier nu", YTitle: "validation accuracy", LogX: true,
		Note: "mean and one standard deviation over seeds", Series: []study.Series{ours, theirs},
	}}
	if len(curves.Series) > 0 {
		if loss == "cross-entropy" { // a network trained with RMSE gives no probabilities: its cross entropy is far above any ceiling's
			curves.Series = append(curves.Series, level(b.of(set, ceiling, "cross-entropy", 0), curves.Series)...)
		}
		charts = append(charts, curves)
	}
	s.Charts = append(s.Charts, charts...)
}

// writtenRows: the accuracy, and how much of it the noise costs, seed by seed.
func writtenRows(section, set, loss string, nu float64, q lab.Spread, base, cells map[uint64]written, paper map[float64]float64) []study.Row {
	row := study.Row{
		Section: section, Label: fmt.Sprintf("nu %v", nu), Metric: "validation accuracy", Unit: "share",
		Settings: map[string]any{"k": 2, "nu": nu, "loss": loss, "set": set, "seeds": len(cells)}, Verdict: study.NoNumber,
		Note: fmt.Sprintf("seeds: %d; other handwriting: levels cannot be compared", len(cells)),
	}
	level, drop := lab.Measured(row, q), row
	theirs, ok := paper[nu]
	if ok {
		level.Paper, level.Verdict = lab.Number(theirs), study.Incomparable
	}
	if nu == 0 {
		return []study.Row{level}
	}
	lost := less(base, cells)
	if len(lost) == 0 {
		return []study.Row{level}
	}
	drop.Metric, drop.Note = "accuracy lost to noise", "the table has no such noise"
	without, found := paper[0]
	if !ok || !found {
		return []study.Row{level, lab.Measured(drop, lab.Interval(lost))}
	}
	drop.Paper, drop.Verdict, drop.Note = lab.Number(without-theirs), study.Incomparable, ""
	if nu == 1 {
		drop.Sentence = "thesis 001, section 2.4.4: a strong defence against DLG, which fails from nu 1 on, with a good level of accuracy"
	}
	switch {
	case nu <= 3:
		drop = lab.AtMost(drop, lost, 0.02)
		drop.Why = whyLost(drop, lost, 0.02)
	case nu >= 10:
		drop = lab.Effect(drop, lost, 0.05)
		drop.Why = whyLost(drop, lost, 0.05)
	default:
		drop.Note = "the paper claims nothing here"
		drop = lab.Measured(drop, lab.Interval(lost))
	}
	if len(lost) < 2 {
		drop.Note = "one seed has no interval, and is not judged"
	}
	return []study.Row{level, drop}
}

// whyLost is the reason that we believe for a loss of accuracy that is not the paper's, and
// how it was tested; empty where it is.
func whyLost(r study.Row, lost []float64, bound float64) string {
	low, high := float64(*r.Low), float64(*r.High)
	switch {
	case r.Verdict != study.Differs:
		return ""
	case low <= bound && bound <= high:
		return fmt.Sprintf("The seeds are too few to tell: one loses %.1f points, another %.1f.", 100*slices.Min(lost), 100*slices.Max(lost))
	case r.Settings["set"] == HandwritingSets[1].Name && high < bound:
		return "We believe that ten classes leave this network more room than FEMNIST's 62: it was tested on UNIPEN, where the same network has 62 and loses more, and with a small network, which loses more on these very pictures."
	}
	return "No reason is known, and none was tested."
}

// ceilings are what a set's network reaches without noise, rotation and federation, and how
// far below it the federation's end lies.
func (b book) ceilings(s *study.Study, set HandwritingSet) {
	top := b.of(set, ceiling, "cross-entropy", 0)
	if len(top) == 0 {
		return
	}
	row := study.Row{Section: "The ceiling: trained centrally on unrotated pictures", Label: set.Name, Metric: "validation accuracy", Unit: "share", Settings: map[string]any{"set": set.Name, "seeds": len(top)}, Verdict: study.NoNumber}
	row.Note = fmt.Sprintf("seeds: %d%s", len(top), lastThird(top, "passes"))
	s.Rows = append(s.Rows, lab.Measured(row, lab.MeanAndDeviation(accuracies(top))))
	for _, loss := range []string{"cross-entropy", "rmse"} {
		end := b.of(set, federated, loss, 0)
		if below := less(top, end); len(below) > 0 {
			row.Label, row.Metric = fmt.Sprintf("%s, federated with %s, nu 0", set.Name, loss), "below the ceiling"
			row.Note = fmt.Sprintf("seeds: %d, 95 %% interval if several%s", len(below), lastThird(end, "rounds"))
			s.Rows = append(s.Rows, lab.Measured(row, lab.Interval(below)))
		}
	}
	if c := curveOf(ceilingName, top); len(c.Points) > 0 {
		s.Charts = append(s.Charts, study.Chart{
			Title: "The ceiling: " + set.Name + ", centrally", XTitle: "passes over the pictures", YTitle: "validation cross entropy",
			Note: "held-out writers, unrotated; mean and 95 % interval over seeds", Series: []study.Series{c},
		})
	}
}

// ceilingName is of one line on all charts.
const ceilingName = "the ceiling: centrally, unrotated"

// lastThird says by how much the loss of runs fell in it; nothing where no curve is known.
func lastThird(cells map[uint64]written, of string) string {
	var fell []float64
	for _, seed := range slices.Sorted(maps.Keys(cells)) {
		c := cells[seed].Curve
		if len(c) == 0 {
			continue
		}
		last := c[len(c)-1]
		before, _ := slices.BinarySearchFunc(c, (2*last.Round+2)/3, func(j judged, round int) int { return cmp.Compare(j.Round, round) })
		fell = append(fell, float64(c[min(before, len(c)-1)].Loss-last.Loss))
	}
	if len(fell) == 0 {
		return ""
	}
	return fmt.Sprintf("; in the last third of the %s the validation loss fell by %.3g", of, lab.MeanAndDeviation(fell).Middle)
}

// level is where the ceiling's loss ends, as a line as long as the others; none where it is
// not known.
func level(top map[uint64]written, beside []study.Series) []study.Series {
	c := curveOf(ceilingName, top)
	if len(c.Points) == 0 {
		return nil
	}
	from, to := math.Inf(1), math.Inf(-1)
	for _, s := range beside {
		for _, p := range s.Points {
			from, to = min(from, p.X), max(to, p.X)
		}
	}
	end := lab.Exactly(c.Points[len(c.Points)-1].Y)
	c.Points = []study.Point{end.At(from), end.At(to)}
	return []study.Series{c}
}

// curveOf is losses by round over seeds.
func curveOf(name string, cells map[uint64]written) study.Series {
	at := map[int][]float64{}
	for _, seed := range slices.Sorted(maps.Keys(cells)) {
		for _, j := range cells[seed].Curve {
			at[j.Round] = append(at[j.Round], float64(j.Loss))
		}
	}
	s := study.Series{Name: name}
	for _, round := range slices.Sorted(maps.Keys(at)) {
		s.Points = append(s.Points, lab.Interval(at[round]).At(float64(round)))
	}
	return s
}
