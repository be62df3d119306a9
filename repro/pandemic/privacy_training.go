package pandemic

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// aims are how many times the prevalence the offered claims are meant to reach at 200,000
// persons; of thinned contacts there is none.
var aims = map[string]float64{"nominated": 15, "home": 12}

// relations name what each way protects.
var relations = map[string]string{"nominated": "own record", "home": "home contacts", "thinned": "thinned contacts"}

// trainedRows are what training leaves, beside the scores that nobody trained.
func trainedRows(cells map[arm][]outcome) (rows []study.Row) {
	told := func(a arm) bool {
		return len(cells[a]) > 0 && !slices.ContainsFunc(cells[a], func(c outcome) bool { return !c.Told })
	}
	precision := func(a arm) float64 {
		return lab.MeanAndDeviation(lab.Pick(cells[a], func(c outcome) float64 { return c.Precision })).Middle
	}
	for _, contacts := range []string{"nominated", "home", "thinned"} {
		a, without := arm{contacts, 1}, arm{contacts, 0}
		if !told(a) || !told(without) {
			continue
		}
		section := fmt.Sprintf("Sound training for epsilon 1: %s", relations[contacts])
		times := lab.MeanAndDeviation(lab.Pick(cells[a], func(c outcome) float64 { return c.Precision / c.Prevalence }))
		note := "mean over seeds of noise, one standard deviation to both sides"
		if aim, ok := aims[contacts]; ok {
			met := "met"
			if times.Middle < aim {
				met = "not met"
			}
			note += fmt.Sprintf("; aim at 200,000 persons: at least %v, %s", aim, met)
		}
		rows = append(rows, lab.Measured(study.Row{Section: section, Label: "average precision over the prevalence", Metric: "times prevalence", Verdict: study.NoNumber,
			Note: note}, times))
		rows = append(rows, lab.Measured(study.Row{Section: section, Label: "less the best untrained score (" + cells[a][0].Best + ")", Metric: "average precision", Verdict: study.NoNumber,
			Note: fmt.Sprintf("paired, 95 %% interval: over households, and over seeds of noise; the untrained score has %.4f. %s", cells[a][0].Rival, whoWins(lessBest(cells[a])))}, lessBest(cells[a])))
		rows = append(rows, lab.Measured(study.Row{Section: section, Label: "share of the same model without noise", Metric: "share", Verdict: study.NoNumber,
			Note: fmt.Sprintf("average precision without noise %.4f", precision(without))},
			lab.MeanAndDeviation(lab.Pick(cells[a], func(c outcome) float64 { return c.Precision / precision(without) }))))
	}
	return append(rows, noiseRows(cells)...)
}

// noiseRows are table 2.6's order: from no noise to much, a row a step, and from one end to the
// other.
func noiseRows(cells map[arm][]outcome) (rows []study.Row) {
	told := func(a arm) bool {
		return len(cells[a]) > 0 && !slices.ContainsFunc(cells[a], func(c outcome) bool { return !c.Told })
	}
	steps := []arm{{"nominated", 0}, {"nominated", 5}, {"nominated", 1}, {"nominated", 0.3}, {"nominated", 0.1}}
	if slices.ContainsFunc(steps, func(a arm) bool { return !told(a) }) {
		return nil
	}
	full := lab.MeanAndDeviation(lab.Pick(cells[steps[0]], func(c outcome) float64 { return c.Precision })).Middle
	row := func(label string, from, to arm) study.Row {
		name := func(a arm) string {
			if a.epsilon == 0 {
				return "no noise"
			}
			return fmt.Sprintf("epsilon %v", a.epsilon)
		}
		lost := lab.Differences(cells[from], cells[to], func(c outcome) float64 { return c.Precision / full })
		return lab.Effect(study.Row{
			Section: "Table 2.6: average precision by noise", Label: label + name(to), Metric: fmt.Sprintf("share that %s leaves, less that of %s", name(from), name(to)), Unit: "of the model without noise",
			Sentence: "table 2.6: 3.113, 2.570, 2.253, 1.351, 0.578 (times 0.01) for sigma 0.01, 0.1, 0.5, 1, 4.5",
			Why:      "We believe that this noise is too small to tell in a model of eighteen weights and full batches, which leaves less to lose than the thesis's 1,672. Tested by more noise, in the rows beside: the step to epsilon 0.1 tells, and that from 5 to 0.1.",
			Note:     "agrees: the whole 95 % interval over seeds of noise above 0. Ours has steps on everybody, theirs batches of 512",
		}, lost, 0)
	}
	last := len(steps) - 1
	rows = append(rows, row("average precision falls as sigma grows, from epsilon 5 to ", steps[1], steps[last]))
	for i := range last {
		rows = append(rows, row("one step of noise more, to ", steps[i], steps[i+1]))
	}
	return rows
}

// lessBest is the model's average precision less the best rival's: the mean over seeds of
// noise. Its interval has the variance over households, which is the same people's for all
// seeds, and that of the mean over seeds.
func lessBest(cells []outcome) lab.Spread {
	mean, households := 0.0, 0.0
	for _, c := range cells {
		mean += float64(c.Less.Value) / float64(len(cells))
		if c.Less.Low != nil && c.Less.High != nil {
			half := float64(*c.Less.High-*c.Less.Low) / 2
			households += half * half / float64(len(cells))
		}
	}
	seeds := 0.0
	for _, c := range cells {
		d := float64(c.Less.Value) - mean
		seeds += d * d
	}
	if n := float64(len(cells)); n > 1 {
		student := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975)
		seeds *= student * student / (n * (n - 1))
	}
	half := math.Sqrt(households + seeds)
	return lab.Spread{Middle: mean, Low: mean - half, High: mean + half}
}

func whoWins(s lab.Spread) string {
	switch {
	case s.Low > 0:
		return "The model is better."
	case s.High < 0:
		return "The untrained score is better."
	}
	return "Neither is told to be better."
}

// noiseChart is average precision by noise; not told where nobody falls ill.
func noiseChart(cells map[arm][]outcome) (study.Chart, bool) {
	chart := study.Chart{
		Title: "Average precision by noise (table 2.6)", XTitle: "noise, over the clip", YTitle: "average precision", LogX: true,
		Note: "Own record: epsilon 5, 1, 0.3 and 0.1 (claim proved, unit node, relation own-record) from the left; without noise is drawn at 1. One standard deviation over seeds of noise.",
	}
	own, rival := study.Series{Name: "own record"}, study.Series{Name: "best untrained score"}
	for _, a := range arms {
		of := cells[a]
		if a.contacts != "nominated" || len(of) == 0 || !of[0].Told {
			continue
		}
		x := max(1, of[0].Noise)
		own.Points = append(own.Points, lab.MeanAndDeviation(lab.Pick(of, func(c outcome) float64 { return c.Precision })).At(x))
		rival.Points = append(rival.Points, lab.Exactly(of[0].Rival).At(x))
	}
	chart.Series = []study.Series{own, rival}
	return chart, len(own.Points) > 0
}

// normBins cut the logarithm of a norm.
const normBins = 24

// norms are those of the gradients of one population at the start: how people spread over
// bins of them, and how far who fall ill stand out.
type norms struct {
	Ill, Well []float64 // shares by bin
	People    [2]int    // who fall ill, and the others
	Times     float64   // the median of the first over the 99th hundredth of the others
}

// normsOf counts one population's.
func normsOf(people data.People, bias float64) (n norms) {
	ill, well := normsAtStart(people, bias)
	n.Ill, n.Well, n.People = binned(ill), binned(well), [2]int{len(ill), len(well)}
	if len(ill) > 0 && len(well) > 0 {
		slices.SortFunc(ill, cmp.Compare)
		slices.SortFunc(well, cmp.Compare)
		n.Times = ill[len(ill)/2] / well[len(well)*99/100]
	}
	return n
}

// The bins reach so far, as powers of ten.
var normsFrom, normsTo = math.Log10(1e-4), math.Log10(30)

func binned(of []float64) []float64 {
	shares := make([]float64, normBins)
	for _, v := range of {
		at := int((math.Log10(max(v, 1e-4)) - normsFrom) / (normsTo - normsFrom) * normBins)
		shares[max(0, min(normBins-1, at))] += 1 / float64(len(of))
	}
	return shares
}

// gradientNorms are those of everybody's gradients at the start, of people who fall ill in a
// window and of the others: figure 2.9, in which few positives stand out of a batch. Nothing
// is trained, so that seeds are of populations; folder keeps none of them.
func gradientNorms(l *lab.Lab, folder *data.Folder, p population, prevalence float64) ([]study.Chart, []study.Row, error) {
	of := make([]norms, l.Seeds)
	for i := range of {
		own := p
		own.seed += uint64(i)
		run, err := l.Resolve(own.runOf(arms[0]))
		if err != nil {
			return nil, nil, err
		}
		err = l.Remember([]any{"norms", run.Data, run.Model.Bias}, &of[i], func(l *lab.Lab) (any, error) {
			fed, err := folder.Load(run.Data, run.Seed)
			if err != nil {
				return nil, err
			}
			return normsOf(fed.Train[0].People, run.Model.Bias), nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	chart := study.Chart{Title: "Norms of gradients at the start (figure 2.9)", XTitle: "norm of a person's gradient", YTitle: "share of the people", LogX: true,
		Note: "One population. No noise, no claim: of private records, for whoever holds them. Who falls ill in one of the windows stands far out."}
	middles := make([]float64, normBins)
	for i := range middles {
		middles[i] = math.Sqrt(edge(i) * edge(i+1))
	}
	chart.Series = []study.Series{
		lab.Curve("who fall ill", middles, func(i int) lab.Spread { return lab.Exactly(of[0].Ill[i]) }),
		lab.Curve("the others", middles, func(i int) lab.Spread { return lab.Exactly(of[0].Well[i]) }),
	}
	return []study.Chart{batchChart(of[0]), chart}, normRows(of, prevalence), nil
}

// batchChart is figure 2.9 in its own form: the norms of one batch, place by place. People come
// as the population's shares have them, spread evenly; a norm is the middle of its bin.
func batchChart(n norms) study.Chart {
	c := study.Chart{Title: "Norms in a batch (figure 2.9)", XTitle: "place in the batch", YTitle: "norm of a person's gradient", LogY: true,
		Note: "512 people as the first population's bins have them; no noise, no claim: of private records, for whoever holds them"}
	share := float64(n.People[0]) / float64(max(1, n.People[0]+n.People[1]))
	at := func(shares []float64, quantile float64) float64 {
		bin := 0
		for sum := shares[0]; bin+1 < len(shares) && sum < quantile; sum += shares[bin] {
			bin++
		}
		return math.Sqrt(edge(bin) * edge(bin+1))
	}
	ill, well := study.Series{Name: "who fall ill", Loose: true}, study.Series{Name: "the others"}
	for i := range batchNodes {
		place := float64(i + 1)
		_, quantile := math.Modf(place * math.Phi) // even, and without order
		if math.Floor(place*share+0.5) > math.Floor((place-1)*share+0.5) {
			ill.Points = append(ill.Points, lab.Exactly(at(n.Ill, quantile)).At(place))
		} else {
			well.Points = append(well.Points, lab.Exactly(at(n.Well, quantile)).At(place))
		}
	}
	c.Series = []study.Series{well, ill}
	return c
}

// normRows are what the text says of figure 2.9, over populations; none where nobody falls ill.
// Prevalence is the share of those who fall ill in the week that is judged.
func normRows(of []norms, prevalence float64) []study.Row {
	if slices.ContainsFunc(of, func(n norms) bool { return n.Times == 0 }) {
		return nil
	}
	const section, least = "Figure 2.9: norms of gradients", 2
	share := func(label, metric, sentence string, least float64, part func(norms) float64) study.Row {
		return lab.Effect(study.Row{Section: section, Label: label, Metric: metric, Unit: "share", Sentence: sentence, Note: fmt.Sprintf("agrees: the whole 95 %% interval over populations above %v", least),
			Why: "We believe that norms of our eighteen inputs, all windows of a person added, are not on the scale of the thesis's 1,671. Tested by the ratio of both kinds, in the first row, which has no scale."}, lab.Pick(of, part), least)
	}
	whole := share("who are not positive", "share of the people", "section 2.5.3: the protection of negatives covers more than 99.5 % of the population", 0.995, func(n norms) float64 { return float64(n.People[1]) / float64(n.People[0]+n.People[1]) })
	whole.Why = fmt.Sprintf("We believe that the text counts who falls ill in one week, as its prevalence does; these gradients add all windows of a person, and whoever falls ill in one of them is positive. Tested by the week that is judged, in which %.2g %% fall ill.", 100*prevalence)
	small, large := edges(1)
	return []study.Row{
		lab.Effect(study.Row{
			Section: section, Label: "positives stand out", Metric: "median norm of who fall ill, over the 99th hundredth of the others'", Unit: "times",
			Sentence: "figure 2.9: three positives stand out of a batch as spikes",
			Note:     fmt.Sprintf("in the first population %d fall ill in a window, %d do not; agrees: the whole 95 %% interval over populations above %v", of[0].People[0], of[0].People[1], least),
		}, lab.Pick(of, func(n norms) float64 { return n.Times }), least),
		share("the others' norms are small", fmt.Sprintf("share of the others below %.2g, the bin's edge under 1", edge(small)), "section 2.5.3: most negative examples have a very small norm (below 1)", 0.5, func(n norms) float64 { return total(n.Well[:small]) }),
		share("positives' norms are large", fmt.Sprintf("share of who fall ill from %.2g, the bin's edge over 1", edge(large)), "section 2.5.3: positive examples have a large norm", 0.5, func(n norms) float64 { return total(n.Ill[large:]) }),
		whole,
	}
}

// edge is where a bin begins.
func edge(bin int) float64 {
	return math.Pow(10, normsFrom+float64(bin)*(normsTo-normsFrom)/normBins)
}

// edges are the bins that begin last at or under a norm and first at or over it.
func edges(norm float64) (under, over int) {
	for edge(under+1) <= norm {
		under++
	}
	if over = under; edge(over) < norm {
		over++
	}
	return under, over
}

func total(shares []float64) (sum float64) {
	for _, v := range shares {
		sum += v
	}
	return sum
}

// normsAtStart are the norms of people's gradients, all windows of a person added, under a
// model of nothing but a constant.
func normsAtStart(people data.People, bias float64) (ill, well []float64) {
	input, sum := make([]float32, people.Inputs()), make([]float64, people.Inputs())
	chance := 1 / (1 + math.Exp(-bias))
	for i := range people.Persons() {
		clear(sum)
		falls, counts := false, false
		for w := range people.Windows() {
			label := people.Input(input, i, w)
			if label < 0 {
				continue
			}
			counts, falls = true, falls || label == 1
			for j, v := range input {
				sum[j] += (chance - float64(label)) * float64(v)
			}
		}
		norm := 0.0
		for _, v := range sum {
			norm += v * v
		}
		switch {
		case falls:
			ill = append(ill, math.Sqrt(norm))
		case counts:
			well = append(well, math.Sqrt(norm))
		}
	}
	return ill, well
}
