package pandemic

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

var silos = lab.Experiment{
	ID: "pandemic-silos", Title: "Pandemic: a health authority a region, each with a target of its own",
	Paper: "paper 002, sections 2.3.1 and 2.4 (remark 2.4.5); table 2.1's lambda and rounds",
	Quick: "2 min", Full: "3 min",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 3, lab.Full: 5},
	Launch: runSilos,
}

// siloCell is what came of one run among regions.
type siloCell struct {
	Precision float64     `json:"precision"` // average precision, mean over regions by persons
	Spent     float64     `json:"spent"`     // largest epsilon of a region
	Claim     event.Claim `json:"claim"`
}

// contender is a method at one epsilon; 0: without noise.
type contender struct {
	method  string
	epsilon float64
	lambda  config.Lambda // empty: the data's own
}

func (c contender) name() string {
	if c.lambda != "" {
		return fmt.Sprintf("%s, lambda %s", c.method, c.lambda)
	}
	return c.method
}

// authorsLambda is the authors' 0.0003 as their code has it, 2 lambda (w - mean).
const authorsLambda config.Lambda = "0.0006"

func runSilos(l *lab.Lab) (study.Study, error) {
	epsilons, persons := []float64{1, 5, 0}, 200_000
	switch l.Scale {
	case lab.Smoke:
		epsilons, persons = []float64{5}, 1_000
	case lab.Quick:
		persons = 50_000
	}
	l.Folder = l.Folder.Keeping() // one population for all cells
	var keys []contender
	for _, epsilon := range epsilons {
		for _, method := range []string{"local", "fedavg", "finetune", "mr-mtl"} {
			keys = append(keys, contender{method: method, epsilon: epsilon})
		}
		keys = append(keys, contender{"mr-mtl", epsilon, authorsLambda})
	}
	cells, err := lab.Table(l, keys, func(c contender) config.Run { return c.run(persons) }, simulateSilos)
	if err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			fmt.Sprintf("%d generated persons in ten regions of 34 to 1.5 %%, a client each; contacts across regions are dropped, since nobody holds both sides. Every region has a declared size, by the generator's public shares, a delta of a tenth of one over it, and finds its noise by itself: two rounds of five steps on everybody, nominated contacts, 6 examples a person. Regions weigh as many persons as they are declared to have.", persons),
			"Judged is the average precision of who falls ill in the week after the known days, by every region's own model on its own people: the mean over regions, by persons. The thesis prints no figure of federated runs, but says why personalisation is expected to help.",
		},
		Caveats: []string{
			"Epsilon, where a row names one, is every region's own: claim proved, unit node, relation own-record, delta as above; noise is seeded floats, for simulation only.",
			"The generator's regions differ in how fast and from where the epidemic spreads, not in who is susceptible: where that differs the study found personalisation ahead from about epsilon 5.",
		},
	}
	chart := study.Chart{Title: "Average precision by method", XTitle: "epsilon of every region (proved, node, own-record)", YTitle: "average precision, mean over regions", LogX: true, Note: "mean and one standard deviation over seeds"}
	series := map[string]int{}
	for _, key := range keys {
		if key.epsilon == 0 {
			continue
		}
		at, known := series[key.name()]
		if !known {
			at = len(chart.Series)
			series[key.name()] = at
			chart.Series = append(chart.Series, study.Series{Name: key.name()})
		}
		chart.Series[at].Points = append(chart.Series[at].Points, precisionOf(cells[key]).At(key.epsilon))
	}
	for _, epsilon := range epsilons {
		s.Rows = append(s.Rows, siloRows(epsilon, cells)...)
	}
	const section = "Sentences that no run here can be held against"
	s.Rows = append(s.Rows,
		missing(section, "the challenge's leaderboard", 0, "section 2.5.1: the solution is within the top 2 on the leaderboards at the time of submission", "neither the data nor the other submissions are public"),
		missing(section, "central and federated", 0, "section 2.5: central performance on the subgraphs would be highly indicative of the federated performance", "the studies of central training have other inputs, steps and populations than this one"))
	s.Charts = []study.Chart{chart}
	return s, nil
}

// run is the run of a contender.
func (c contender) run(persons int) config.Run {
	run := config.Default("pandemic", c.method, "sound")
	run.Name = "pandemic-silos"
	run.Data.Persons, run.Data.PopulationSeed, run.Data.Partition = persons, 11, "region"
	run.Algorithm.Rounds, run.Algorithm.Local.Steps = 2, 5
	run.Privacy.PublicSize, run.Privacy.Delta = persons, 0.1/float64(persons)
	run.Judge.By, run.Algorithm.Weights = "own", "counts"
	for region, share := range []float64{.34, .19, .13, .09, .07, .06, .045, .035, .025, .015} {
		size := int(math.Round(share * float64(persons)))
		run.Privacy.Silos = append(run.Privacy.Silos, config.SiloTarget{Name: fmt.Sprintf("region-%d", region), PublicSize: size, Delta: 0.1 / float64(size)})
	}
	switch run.Privacy.Epsilon = c.epsilon; {
	case c.lambda != "":
		run.Algorithm.Lambda = c.lambda
	case c.epsilon > 0 && c.epsilon <= 1:
		run.Algorithm.Lambda = "0.1"
	default:
		run.Algorithm.Lambda = "0.01"
	}
	if c.epsilon == 0 {
		lab.Unprotected(&run)
		run.Privacy.Silos = nil
	}
	return run
}

func simulateSilos(l *lab.Lab, run config.Run) (siloCell, error) {
	res, err := l.Result(run)
	if err != nil {
		return siloCell{}, err
	}
	c, persons := siloCell{Claim: res.Privacy.Claim}, 0
	for _, p := range res.Participants {
		c.Spent = math.Max(c.Spent, float64(p.Epsilon))
		if f := p.Figures; f != nil && f.AveragePrecision != nil { // nobody falls ill in some small region
			c.Precision += float64(p.Examples) * float64(f.AveragePrecision.Value)
			persons += p.Examples
		}
	}
	c.Precision /= float64(max(1, persons))
	if run.Privacy.Protects == "nothing" {
		c.Spent = 0 // nothing is promised
	}
	return c, nil
}

func precisionOf(cells []siloCell) lab.Spread {
	return lab.MeanAndDeviation(lab.Pick(cells, func(c siloCell) float64 { return c.Precision }))
}

// least is how much worse than another a method may be that is called bounded by it, as a
// share.
const least = 0.05

// siloRows are figures and claims at one epsilon.
func siloRows(epsilon float64, cells map[contender][]siloCell) []study.Row {
	section := "Without noise"
	unit := ""
	if epsilon > 0 {
		section, unit = fmt.Sprintf("Every region at epsilon %v (proved, node, own-record)", epsilon), "node, own-record, proved"
	}
	at := func(method string, lambda config.Lambda) []siloCell { return cells[contender{method, epsilon, lambda}] }
	var rows []study.Row
	for _, c := range []contender{{"local", epsilon, ""}, {"fedavg", epsilon, ""}, {"finetune", epsilon, ""}, {"mr-mtl", epsilon, ""}, {"mr-mtl", epsilon, authorsLambda}} {
		rows = append(rows, lab.Measured(study.Row{
			Section: section, Label: c.name(), Metric: "average precision", Unit: unit, Verdict: study.NoNumber, Settings: map[string]any{"epsilon": epsilon},
		}, precisionOf(cells[c])))
	}
	// relative is one less another, as a share of the other's mean, seed by seed.
	relative := func(a, b []siloCell) []float64 {
		apart := make([]float64, len(a))
		for i := range a {
			apart[i] = (a[i].Precision - b[i].Precision) / max(1e-9, precisionOf(b).Middle)
		}
		return apart
	}
	claims := section + ": what the text claims"
	row := func(label, sentence, note, why string) study.Row {
		return study.Row{Section: claims, Label: label, Metric: "average precision, as a share of the other's, paired by seed", Unit: unit, Sentence: sentence, Note: note, Why: why}
	}
	mrmtl, local, fedavg := at("mr-mtl", ""), at("local", ""), at("fedavg", "")
	rows = append(rows,
		lab.Effect(row("MR-MTL minus local", "2.3.1: its utility is lower bounded by local training", fmt.Sprintf("agrees: the whole 95 %% interval over seeds above -%v", least), fewPopulations), relative(mrmtl, local), -least),
		lab.Effect(row("MR-MTL minus FedAvg", "2.3.1: model personalization is likely necessary, as the silos are large and somewhat heterogeneous", "", "We believe that the generator's regions are too much alike for models of their own to pay: they differ in how fast and from where the epidemic spreads, not in who is susceptible. Tested in a study beforehand, in which personalisation led where that differs (caveats)."), relative(mrmtl, fedavg), 0),
		lab.Measured(study.Row{
			Section: section, Label: "the authors' lambda minus local", Metric: "average precision, as a share of the other's, paired by seed", Unit: unit, Verdict: study.NoNumber,
			Note: "lambda 0.0003 of table 2.1, 0.0006 by their code's gradient: hardly more than training alone",
		}, lab.Interval(relative(at("mr-mtl", authorsLambda), local))))
	if epsilon == 0 {
		return rows
	}
	kept := lab.MeanAndDeviation(lab.Pick(mrmtl, func(c siloCell) float64 { return c.Spent }))
	return append(rows, lab.Claim(study.Row{
		Section: claims, Label: "largest epsilon that a region spends", Metric: "epsilon", Unit: "node, own-record, delta a tenth of one over the region's size",
		Sentence: "remark 2.4.5: MR-MTL provably satisfies silo-specific node-level DP",
		Note:     "the theorem's minibatches with random neighbours do not (docs/proofs/node-relations.md); full batches on nominated contacts do; agrees: at most the target, and the claim is proved",
	}, kept, kept.High <= epsilon*(1+1e-9) && lab.Share(mrmtl, func(c siloCell) bool { return c.Claim == event.ClaimProved }) == 1))
}
