package pandemic

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

var privacy = lab.Experiment{
	ID: "pandemic-privacy", Title: "What protecting persons costs, and what it leaves of the forecast",
	Paper: "paper 002, chapter 2: figures 2.8 and 2.9, table 2.6",
	Quick: "60 s", Full: "9 min",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 5, lab.Full: 5},
	Launch: launchPrivacy,
}

// population is whom runs of a scale are trained on.
type population struct {
	persons  int
	seed     uint64
	examples int // that a person is in, where it offers itself
	degree   int // contacts that nobody has more of: thinning's promise
}

// populations: quick is the size at which a study settled the settings; ten times the
// persons bear more contacts.
var populations = map[string]population{
	lab.Smoke: {1500, 22, 4, 300},
	lab.Quick: {200_000, 11, 6, 160},
	lab.Full:  {1_000_000, 1, 11, 200},
}

// arm is a way to train: which contacts enter whose example, and for which epsilon; 0: clipped
// alone.
type arm struct {
	contacts string
	epsilon  float64
}

// arms: those at epsilon 1 are the claims that are offered.
var arms = []arm{
	{"nominated", 0.1}, {"nominated", 0.3}, {"nominated", 1}, {"nominated", 5}, {"nominated", 0},
	{"home", 1}, {"home", 0}, {"thinned", 1}, {"thinned", 0},
}

// clippedAlone is a noise that does nothing: every step needs one.
const clippedAlone = 1e-6

// runOf is central training in sound mode, with the settings of the kind of data.
func (p population) runOf(a arm) config.Run {
	run := config.Default("pandemic", "central", "sound")
	run.Name = "pandemic-privacy"
	run.Data.Persons, run.Data.PopulationSeed = p.persons, p.seed
	run.Privacy.PublicSize, run.Privacy.Delta = p.persons, 0.1/float64(p.persons)
	run.Privacy.Nodes.Examples = p.examples
	switch a.contacts {
	case "home":
		run.Privacy.Nodes = config.Nodes{Contacts: "home", Examples: 8}
	case "thinned":
		run.Privacy.Nodes = config.Nodes{Contacts: "thinned", Keep: 0.1, Degree: p.degree}
	}
	if run.Privacy.Epsilon = a.epsilon; a.epsilon == 0 {
		run.Privacy.NoiseMultiplier = clippedAlone
	}
	return run
}

// outcome is what came of one run.
type outcome struct {
	Precision  float64         // average precision of the model
	Best       string          // rival
	Rival      float64         // its average precision
	Less       *metrics.Figure // the model's less the rival's
	Prevalence float64
	Noise      float64 // over the clip
	Told       bool    // somebody falls ill
}

func measure(l *lab.Lab, run config.Run) (outcome, error) {
	res, err := l.Result(run)
	if err != nil {
		return outcome{}, err
	}
	u := res.Untrained
	c := outcome{Prevalence: u.Prevalence(), Noise: float64(res.Participants[0].Noise)}
	if best := u.Strongest(); best != nil {
		c.Told, c.Precision, c.Best = true, float64(u.AveragePrecision.Value), best.Name
		c.Rival, c.Less = float64(best.AveragePrecision.Value), best.Difference
	}
	return c, nil
}

func launchPrivacy(l *lab.Lab) (study.Study, error) {
	plain := l.Folder
	l.Folder = l.Folder.Keeping() // all runs are on one population
	p := populations[l.Scale]
	out := study.Study{
		Intro: []string{
			fmt.Sprintf("The thesis's epsilons are computed again by its theorem and by its authors' formula (unit node, relation replace-one, delta 1/n, S 20, batches of 512 of 2,609,976 nodes). Training is ours: eighteen weights, ten steps on everybody of %d generated persons.", p.persons),
			"Own record (claim proved, unit node, relation own-record): what a person is, its history and its own report of contacts. Home contacts (claim proved, unit node, relation full-removal): the person and everybody's reports of it. Thinned contacts (the same claim, and the promise that nobody has more contacts than are declared): every step keeps a tenth of them, by a secret of its own.",
		},
		Caveats: []string{
			"The challenge's data are not public: average precisions are of a generated population, and only orders can be compared with the thesis's.",
			"Untrained scores cost nothing. Where the interval of the difference holds 0, training is not seen to pay.",
		},
	}
	charts, rows, err := printedEpsilons()
	if err != nil {
		return study.Study{}, err
	}
	out.Charts, out.Rows = charts, rows
	cells, err := lab.Table(l, arms, p.runOf, measure)
	if err != nil {
		return study.Study{}, err
	}
	out.Rows = append(out.Rows, trainedRows(cells)...)
	if c, ok := noiseChart(cells); ok {
		out.Charts = append(out.Charts, c)
	}
	norms, rows, err := gradientNorms(l, plain, p, cells[arms[0]][0].Prevalence)
	if err != nil {
		return study.Study{}, err
	}
	out.Rows = append(out.Rows, rows...)
	out.Charts = append(out.Charts, norms...)
	return out, nil
}
