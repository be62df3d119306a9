package silos

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// gains are by how much the first outcome is better than the second, seed by seed, as
// shares of the second's figure: errors are lower, shares of right answers higher.
func gains(lower bool, a, b outcome) []float64 {
	out := make([]float64, min(len(a.cells), len(b.cells)))
	for i := range out {
		if out[i] = figure(a.cells[i])/figure(b.cells[i]) - 1; lower {
			out[i] = -out[i]
		}
	}
	return out
}

// bestNamed is the best outcome of those with these names, by the mean over seeds.
func bestNamed(lower bool, row []outcome, names ...string) outcome {
	var cells [][]cell
	for _, name := range names {
		cells = append(cells, named(row, name).cells)
	}
	return named(row, names[bestOf(cells, lower)])
}

// less is one list of figures less another, seed by seed.
func less(a, b []float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = a[i] - b[i]
	}
	return out
}

// meanOver is the mean of several lists, seed by seed.
func meanOver(lists ...[]float64) []float64 {
	out := make([]float64, len(lists[0]))
	for _, list := range lists {
		for i, v := range list {
			out[i] += v / float64(len(lists))
		}
	}
	return out
}

// nearly is how much worse a method may be that a text calls as good as another: one
// hundredth of the other's figure.
const nearly = 0.01

// gain is a row about gains, which lab.Effect judges.
func gain(section, label, sentence, why string) study.Row {
	return study.Row{Section: section, Label: label, Metric: "gain, as a share of the other's figure", Unit: "share", Sentence: sentence, Why: why}
}

// fewSeeds is what we believe of effects that are smaller than their spread.
const fewSeeds = "We believe that the effect, if there is one, is small beside its spread over so few seeds. Tested by nothing but the seeds of this scale; --seeds gives more."

// opposite stands where the seeds tell the opposite, and nobody has found out why.
const opposite = "No reason is known, and none was tested: the opposite holds by the whole interval over these seeds."

// effect is lab.Effect, with another reason where not the seeds are too few.
func effect(r study.Row, values []float64, least float64) study.Row {
	r = lab.Effect(r, values, least)
	if r.Verdict == study.Differs && float64(*r.High) < least && r.Why == fewSeeds {
		r.Why = opposite
	}
	return r
}

// bestPowers are the lambdas with which MR-MTL did best, seed by seed, as powers of ten.
func (sp spectrum) bestPowers() []float64 { return sp.powersOf(sp.mtl) }

// powersOf are those of a method.
func (sp spectrum) powersOf(o outcome) []float64 { return powersOf(sp.lambdas, o, sp.lower) }

// powersOf are the lambdas with which a method did best, seed by seed, as powers of ten.
func powersOf(lambdas []float64, o outcome, lower bool) []float64 {
	out := make([]float64, len(o.cells))
	for seed := range out {
		best := 0
		for i := range lambdas {
			a, b := figure(o.all[i][seed]), figure(o.all[best][seed])
			if lower && a < b || !lower && a > b {
				best = i
			}
		}
		out[seed] = math.Log10(lambdas[best])
	}
	return out
}

// interpolates are section 1.5's first observation: with the smallest lambda MR-MTL ends nearer
// to training alone, with the largest nearer to FedAvg.
func (sp spectrum) interpolates(section string) []study.Row {
	return sp.interpolation(section, sp.mtl, "MR-MTL", "section 1.5: in both private and non-private settings, lambda roughly interpolates between local training and FedAvg")
}

// interpolation is a method's between the two ends.
func (sp spectrum) interpolation(section string, of outcome, name, sentence string) []study.Row {
	nearer := func(i int, to, from outcome) []float64 {
		out := make([]float64, len(of.all[i]))
		for seed, c := range of.all[i] {
			away := func(o outcome) float64 { return math.Abs(figure(c) - figure(o.cells[seed])) }
			out[seed] = away(from) - away(to)
		}
		return out
	}
	row := func(lambda float64, to, from outcome, why string) study.Row {
		return study.Row{Section: section, Label: fmt.Sprintf("%s with lambda %v: distance from %s less that from %s", name, lambda, from.name, to.name), Metric: "difference",
			Sentence: sentence, Why: why}
	}
	// Better than both ends, a figure does not tell which of them the model is nearer to.
	why := func(i int, otherwise string) string {
		end := sp.better()
		if at := (outcome{cells: of.all[i]}); lab.Interval(gains(sp.lower, at, end)).Low > 0 {
			return fmt.Sprintf("We believe that this figure does not tell which end the models are near to: it is better than both, so that the row compares the ends with one another. Tested by the figure itself: %.3g beside %.3g of %s, the better end, and better by the whole 95 %% interval over seeds.", at.spread().Middle, end.spread().Middle, end.name)
		}
		return otherwise
	}
	last := len(sp.lambdas) - 1
	if last == 0 {
		return nil
	}
	return []study.Row{
		effect(row(sp.lambdas[0], sp.local, sp.fedavg, why(0, "We believe that the smallest lambda of this scale is not small enough to be training alone. Tested by the chart, in which smaller ones come nearer to it.")), nearer(0, sp.local, sp.fedavg), 0),
		effect(row(sp.lambdas[last], sp.fedavg, sp.local, why(last, "We believe that what the text says of large lambda holds: the regulariser dominates the steps, and "+name+" need not end at FedAvg. Tested by drawing models to the mean after the round, which ends there at lambda infinite.")), nearer(last, sp.fedavg, sp.local), 0),
	}
}

// astray is how far the curve over lambda goes the wrong way, before and behind its best
// point, as a share of its whole range, seed by seed: 0 is one bump.
func (sp spectrum) astray() []float64 {
	out := make([]float64, len(sp.mtl.cells))
	for seed := range out {
		values := make([]float64, len(sp.lambdas))
		for i := range values {
			if values[i] = figure(sp.mtl.all[i][seed]); sp.lower {
				values[i] = -values[i]
			}
		}
		top := slices.Index(values, slices.Max(values))
		wrong := 0.0
		for i := range len(values) - 1 {
			step := values[i+1] - values[i]
			if i < top {
				step = -step
			}
			wrong += max(0, step)
		}
		out[seed] = wrong / (slices.Max(values) - slices.Min(values))
	}
	return out
}

// better is the better end of the spectrum: training alone or FedAvg.
func (sp spectrum) better() outcome {
	if bestOf([][]cell{sp.local.cells, sp.fedavg.cells}, sp.lower) == 0 {
		return sp.local
	}
	return sp.fedavg
}

// spectraRows are what sections 1.5 and G.2 observe across budgets: spectra come in
// ascending order of epsilon, the one without privacy (0) first if there is one.
func spectraRows(section string, all []spectrum) (rows []study.Row) {
	private := slices.DeleteFunc(slices.Clone(all), func(sp spectrum) bool { return sp.epsilon == 0 })
	if len(private) == 0 {
		return nil
	}
	if len(private) < len(all) {
		free, near := all[0], private[len(private)-1] // the largest: 6 or 8 on School, where the regime of interest is
		rows = append(rows,
			effect(gain(section, "MR-MTL over the better end: "+epsilonLabel(near.epsilon)+" less no privacy",
				"section 1.5: the advantage of MR-MTL over the best of the endpoints is larger under privacy", fewSeeds),
				less(gains(free.lower, near.mtl, near.better()), gains(free.lower, free.mtl, free.better())), 0),
			effect(study.Row{Section: section, Label: "best lambda: " + epsilonLabel(near.epsilon) + " less no privacy", Metric: "powers of ten", Unit: "powers of ten",
				Sentence: "section 1.5: the best lambda increases under privacy", Why: fewSeeds}, less(near.bestPowers(), free.bestPowers()), 0))
		for _, sp := range private {
			rows = append(rows, shrinking(section, free, sp)...)
		}
	}
	for _, sp := range private {
		if len(sp.lambdas) < 4 {
			continue
		}
		rows = append(rows, lab.AtMost(study.Row{Section: section, Label: epsilonLabel(sp.epsilon) + ": MR-MTL's way against one bump", Metric: "share of the range", Unit: "share",
			Sentence: "section 1.6: utility as a function of lambda has a quasi-concave shape, as was empirically observed", Why: fewSeeds,
			Note: "agrees: the whole 95 % interval over seeds below a tenth of the curve's range"}, sp.astray(), 0.1))
	}
	if len(private) < 2 {
		return rows
	}
	strict, loose := private[0], private[len(private)-1]
	between := epsilonLabel(strict.epsilon) + " against " + epsilonLabel(loose.epsilon)
	return append(rows,
		effect(study.Row{Section: section, Label: "best lambda, " + between, Metric: "powers of ten", Unit: "powers of ten",
			Sentence: "G.2: the best lambda decreases as epsilon grows", Why: fewSeeds, Note: "agrees: the whole 95 % interval over seeds above 0; best lambda:" + bestLambdas(all)},
			less(strict.bestPowers(), loose.bestPowers()), 0),
		effect(gain(section, "MR-MTL over FedAvg, "+epsilonLabel(loose.epsilon)+" less "+epsilonLabel(strict.epsilon), "G.2: with larger epsilon the advantage of MR-MTL is larger compared to FedAvg", fewSeeds),
			less(gains(loose.lower, loose.mtl, loose.fedavg), gains(loose.lower, strict.mtl, strict.fedavg)), 0),
		effect(gain(section, "MR-MTL over local, "+epsilonLabel(strict.epsilon)+" less "+epsilonLabel(loose.epsilon), "G.2: with larger epsilon the advantage of MR-MTL is smaller compared to local training", fewSeeds),
			less(gains(loose.lower, strict.mtl, strict.local), gains(loose.lower, loose.mtl, loose.local)), 0))
}

// apart is a row about data that are not the paper's: the sentence is told, and not judged.
func apart(r study.Row, why string) study.Row {
	switch {
	case r.Sentence != "":
		why = r.Sentence + "; " + why
	case r.Verdict == study.Incomparable && r.Note != "": // one seed: the note has the sentence
		why = r.Note + "; " + why
	}
	r.Verdict, r.Sentence, r.Note, r.Why = study.Incomparable, "", why, ""
	return r
}

// untold is a row of data that are not the paper's: a claim is told and not judged, a
// figure says why.
func untold(r study.Row, why string) study.Row {
	if r.Sentence != "" || r.Verdict == study.Incomparable {
		return apart(r, why)
	}
	r.Note = why
	return r
}

// tradeoffClaims are section 1.4's sentences on one panel of figure 1.3 at one epsilon; below
// high the text calls privacy high.
func tradeoffClaims(section string, epsilon, high float64, lower bool, row []outcome, rivals ...string) []study.Row {
	mtl, end := named(row, "MR-MTL"), bestNamed(lower, row, "local", "FedAvg")
	ours := gains(lower, mtl, end)
	atLeast := gain(section, "MR-MTL over "+end.name+", the better end", "section 1.4, figure 1.3: MR-MTL performs at least as good as local training and FedAvg, except at high privacy", fewSeeds)
	atLeast.Note = "agrees: the whole 95 % interval over seeds above -0.01"
	atLeast = effect(atLeast, ours, -nearly)
	if epsilon > 0 && epsilon < high {
		atLeast = apart(atLeast, "high privacy: the paper excepts it, and does not say where it begins")
	}
	rows := []study.Row{atLeast}
	rival := bestNamed(lower, row, rivals...)
	over := effect(gain(section, "MR-MTL over "+rival.name+", the best of the other methods", "section 1.4: MR-MTL consistently outperforms a suite of baseline methods", fewSeeds), gains(lower, mtl, rival), 0)
	if over.Why == opposite && epsilon > 0 && epsilon < high {
		over.Why = "We believe that at high privacy only models that are shared average the noise away, and that lambda cannot grow at will: the text says so of local training and FedAvg, and excepts high privacy there. Tested by the study silo-lambda, in which models that are drawn to the mean after the round end at FedAvg as lambda grows."
	}
	if rows = append(rows, over); epsilon > 0 && epsilon < high {
		rows = append(rows, behindFedAvg(section, lower, mtl, named(row, "FedAvg")))
	}
	return rows
}

// behindFedAvg is what the texts say of high privacy.
func behindFedAvg(section string, lower bool, mtl, fedavg outcome) study.Row {
	return effect(gain(section, "FedAvg over MR-MTL, at high privacy", "sections 1.5 and G.2: at high privacy MR-MTL may underperform FedAvg, as lambda cannot grow at will", fewSeeds), gains(lower, fedavg, mtl), 0)
}

// missing is a sentence of the text that no cell here can be held against, and why.
func missing(section, label, sentence, why string) study.Row {
	return study.Row{Section: section, Label: label, Verdict: study.Incomparable, Note: sentence + "; " + why}
}
