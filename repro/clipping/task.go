package clipping

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// rows are finished cells of full runs, to be taken up before any is computed.
//
//go:embed rows
var rows embed.FS

// task is a data set of the chapter with its network.
type task struct {
	kind      string // data.kind
	needs     []string
	pictures  bool
	lower     bool // the figure is an error
	unit      string
	epsilons  []float64
	block     int // steps between two judgements: one epoch
	blocks    int
	seeds     int // of full scale
	quick     quickScale
	otherData bool // than the thesis's
	whole     bool // its grids are small enough to be computed whole at full scale
	apart     bool // Online is taken apart on it: the network on which its clip hardly adapts
	prepare   func(*config.Run)
	// likely are the settings of a method's grid, k = 5, that full scale computes: the
	// thesis's and another implementation's best ones and their neighbours.
	likely map[method][]setting
	// best are those of them that the first seed found better than the others: further
	// seeds are of these alone. A method that has none here has one setting, or needs all.
	best   map[cellGroup]setting
	intro  string
	differ []string // from the thesis
	// apartFrom is what we believe makes single figures differ from the thesis's.
	apartFrom string
	// apartMoved is that of figures with momentum, at the thesis's own settings.
	apartMoved string
	claims     func(b book) []study.Row

	other  map[budget]float64
	thesis []table        // its tables
	smoke  []config.Layer // a network for runs of a moment
}

// cellGroup is a method whose so many runs share an epsilon; 0: without noise.
type cellGroup struct {
	method  method
	epsilon float64
	runs    int
}

// quickScale is what fits into five minutes on two cores.
type quickScale struct {
	epsilons []float64
	blocks   int
	settings map[method][]setting // nil: whole grids
}

var digits = task{
	kind: "mnist", needs: []string{"mnist"}, pictures: true, unit: "%", epsilons: []float64{3, 5, 7, 9}, block: 118, blocks: 10, seeds: 3, apart: true,
	quick: quickScale{epsilons: []float64{3, 9}, blocks: 2, settings: map[method][]setting{
		online: {{31.62, startClip, 0}}, threshold: {{31.62, 0.1, 0}}, quantile: {{0.3162, startClip, 0.5}}, adamWOSM: {{adamStep, 10, 0}},
	}},
	likely: map[method][]setting{
		online:    {{31.62, startClip, 0}},
		threshold: {{31.62, 0.1, 0}, {3.162, 0.1, 0}},
		quantile:  {{0.3162, startClip, 0.7}, {0.03162, startClip, 0.7}, {0.3162, startClip, 0.5}},
		adamWOSM:  {{adamStep, 10, 0}},
		noDP:      {{Step: 0.03162}, {Step: 0.003162}},
	},
	best: map[cellGroup]setting{
		{threshold, 3, 25}: {3.162, 0.1, 0}, {threshold, 9, 25}: {31.62, 0.1, 0},
		{threshold, 3, 5}: {31.62, 0.1, 0}, {threshold, 9, 5}: {31.62, 0.1, 0},
		{threshold, 5, 25}: {31.62, 0.1, 0}, {threshold, 7, 25}: {31.62, 0.1, 0},
		{threshold, 5, 5}: {31.62, 0.1, 0}, {threshold, 7, 5}: {31.62, 0.1, 0},
		{quantile, 3, 25}: {0.03162, startClip, 0.7}, {quantile, 9, 25}: {0.3162, startClip, 0.7},
		{quantile, 5, 25}: {0.3162, startClip, 0.7}, {quantile, 7, 25}: {0.3162, startClip, 0.7},
		{noDP, 0, 0}: {Step: 0.03162},
	},
	intro: "A convolutional network of 551,322 parameters is trained on MNIST's 60,000 digits, in batches of 512 for 10 epochs.",
	differ: []string{
		"Table 3.5 has a ReLU behind the last layer; with cross entropy that hardly learns, so the loss sees the raw outputs.",
	},
	apartFrom:  plainSteps,
	apartMoved: "No reason is known: one is above the thesis's figure and one below it. The model was tested, the best judgement in place of the last one: it is higher by 0.04 points at most.",
	claims:     digitClaims, other: otherDigits,
	smoke: []config.Layer{{Kind: "linear", Units: 10}},
}

var clothes = task{
	kind: "fashion-mnist", needs: []string{"fashion-mnist"}, pictures: true, lower: true, unit: "100 x squared error", epsilons: []float64{1, 2, 3, 4}, block: 118, blocks: 10, seeds: 3,
	quick: quickScale{epsilons: []float64{3}, blocks: 1, settings: map[method][]setting{
		online: {{3.162, startClip, 0}}, threshold: {{31.62, 0.1, 0}}, quantile: {{3.162, startClip, 0.1}}, adamWOSM: {{adamStep, 0.1, 0}},
	}},
	prepare: func(r *config.Run) {
		r.Data.Task, r.Model.Name, r.Algorithm.Local.Loss = "reconstruct", "autoencoder", "squared-error"
	},
	likely: map[method][]setting{
		online:    {{3.162, startClip, 0}, {31.62, startClip, 0}},
		threshold: {{31.62, 0.1, 0}, {31.62, 0.01, 0}},
		quantile:  {{3.162, startClip, 0.1}, {3.162, startClip, 0.3}},
		adamWOSM:  {{adamStep, 0.1, 0}, {adamStep, 0.01, 0}},
		noDP:      {{Step: 0.3162}, {Step: 3.162}},
	},
	best: map[cellGroup]setting{ // in between; at the ends all are finished, and Online's larger step diverges in some seeds
		{threshold, 2, 25}: {31.62, 0.01, 0}, {threshold, 3, 25}: {31.62, 0.01, 0},
		{quantile, 2, 25}: {3.162, startClip, 0.3}, {quantile, 3, 25}: {3.162, startClip, 0.1},
		{adamWOSM, 2, 5}: {adamStep, 0.1, 0}, {adamWOSM, 3, 5}: {adamStep, 0.01, 0},
	},
	intro: "A convolutional autoencoder of 48,705 parameters learns to give back Fashion-MNIST's 60,000 pictures, in batches of 512 for 10 epochs. The figure is 100 times the mean squared error of a pixel: lower is better.",
	differ: []string{
		"Table 3.12 prints epsilon 3, 5, 7, 9 where the text and table 3.9 have 1, 2, 3, 4: the latter are taken.",
	},
	apartFrom:  "No reason is known. Momentum was tested, at the thesis's own settings: with it the errors at both ends are smaller than the thesis's, too. So were start and arithmetic: another implementation, with PyTorch's start and products of bfloat16, comes to ours and not to the thesis's (notes).",
	apartMoved: "No reason is known: errors are smaller than the thesis's with momentum and without. Tested by both.",
	claims:     clothesClaims, other: otherClothes,
	smoke: []config.Layer{{Kind: "conv", Channels: 1, Kernel: 1}, {Kind: "sigmoid"}},
}

var news = task{
	kind: "agnews", needs: []string{"agnews", "glove"}, unit: "%", epsilons: []float64{3, 5, 7, 9}, block: 26, blocks: 10, seeds: 3,
	quick: quickScale{epsilons: []float64{3}, blocks: 10},
	whole: true, otherData: true,
	intro: "A network of 113,156 parameters tells four kinds of news apart by 15 words of 50 numbers each, in batches of 512 for 10 epochs.",
	differ: []string{
		"About 13,000 of the thesis's 120,000 training texts are at hand, so a batch is a nine times larger share of them and the noise is larger: accuracies cannot be compared with the tables, orders can.",
		"Words are GloVe's vectors of 100 numbers projected to 50, those of 50 are not at hand. Table 3.7's activation behind the last layer is left to the loss.",
		"The list of words at hand was drawn from the texts, and the projection follows from it: on these texts the claim is heuristic, and proved only for what comes after the projection.",
	},
	claims: newsClaims, other: otherNews,
	smoke: []config.Layer{{Kind: "linear", Units: 4}},
}

// experiment is the task's study, whose cells a runner makes.
func (t task) experiment(id, title, paper, quick, full string, run runner) lab.Experiment {
	return lab.Experiment{
		ID: id, Title: title, Paper: paper, Needs: t.needs, Quick: quick, Full: full,
		Device: t.pictures,
		Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 1, lab.Full: t.seeds, lab.Grids: 5},
		Launch: func(l *lab.Lab) (study.Study, error) { return t.launch(l, id+".jsonl", run) },
	}
}

// at is the task at a scale.
func (t task) at(scale string) task {
	switch scale {
	case lab.Smoke:
		t.epsilons, t.block, t.blocks = t.epsilons[:1], 2, 1
	case lab.Quick:
		t.epsilons, t.blocks = t.quick.epsilons, t.quick.blocks
	}
	return t
}

// shrink makes a run of a moment, with a network of few parameters.
func (t task) shrink(r *config.Run) {
	r.Model.Kind, r.Model.Name, r.Model.Layers = "network", "", t.smoke
}

// steps is how long a run is.
func (t task) steps() int { return t.block * t.blocks }

// launch computes what is missing and lays the tables out.
func (t task) launch(l *lab.Lab, name string, run runner) (study.Study, error) {
	var err error
	if t.thesis, err = thesisTables(); err != nil {
		return study.Study{}, err
	}
	committed, err := rows.ReadFile("rows/" + name)
	if err != nil {
		return study.Study{}, fmt.Errorf("committed cells: %w", err)
	}
	own := t.at(l.Scale)
	keys := own.cells(l)
	finished, err := lab.Fill(l, name, committed, keys, func(l *lab.Lab, k key) (outcome, error) { return run(l, own, k) })
	if err != nil {
		return study.Study{}, err
	}
	shorter := book{own, finished, changed(l), false}
	whole := book{t, finished, strings.Join(l.Set, " "), true}
	return t.study(l, shorter, whole, keys), nil
}

// changed are the settings that no committed cell has.
func changed(l *lab.Lab) string {
	if l.Scale == lab.Smoke {
		return strings.Join(append([]string{lab.Smoke}, l.Set...), " ")
	}
	return strings.Join(l.Set, " ")
}

// further says that a cell is needed: of the first seed all are.
func (t task) further(scale string, k key) bool {
	best, known := t.best[cellGroup{k.Method, k.Epsilon, k.Runs}]
	return scale != lab.Full || k.Seed == 1 || !known || k.Setting == best
}

// cells are the keys of a scale, what matters most first, each with all its seeds: whoever
// stops early has the most of it.
func (t task) cells(l *lab.Lab) (keys []key) {
	seeds := func(of func(k key) []key) {
		for seed := range l.Seeds {
			keys = append(keys, of(key{Study: t.kind, Seed: uint64(seed + 1), Steps: t.steps(), Changed: changed(l)})...)
		}
	}
	tables := func(epsilons []float64) {
		seeds(t.each(epsilons, func(k key) []key {
			return slices.DeleteFunc(t.tableCells(l.Scale, k), func(k key) bool { return !t.further(l.Scale, k) })
		}))
	}
	ends, between := t.epsilonsByWeight()
	tables(ends)
	if l.Scale == lab.Full || l.Scale == lab.Grids {
		seeds(func(k key) []key {
			alone := func(k key) []key { return t.aloneCells(l.Scale, k) }
			return slices.Concat(t.armCells(k), t.each(ends, t.thesisCells)(k), t.each(ends, alone)(k))
		})
	}
	tables(between)
	if l.Scale == lab.Grids {
		seeds(t.each(between, func(k key) []key { return t.aloneCells(l.Scale, k) }))
	}
	if l.Scale == lab.Full && t.whole || l.Scale == lab.Grids {
		finer := func(k key) (keys []key) {
			for _, m := range private {
				keys = append(keys, gridCells(k, m, 9, gridOf(m, 9))...)
			}
			return keys
		}
		seeds(t.each(ends, finer))
		seeds(t.each(between, finer))
	}
	return keys
}

// each makes cells of a seed cells at several epsilons.
func (t task) each(epsilons []float64, of func(k key) []key) func(k key) []key {
	return func(k key) (keys []key) {
		for _, k.Epsilon = range epsilons {
			keys = append(keys, of(k)...)
		}
		return keys
	}
}

// epsilonsByWeight are the smallest and the largest, which claims are about, and the others.
func (t task) epsilonsByWeight() (ends, between []float64) {
	n := len(t.epsilons)
	if n < 3 {
		return t.epsilons, nil
	}
	return []float64{t.epsilons[0], t.epsilons[n-1]}, t.epsilons[1 : n-1]
}

// tableCells are the cells of the tables with k = 5 at one epsilon.
func (t task) tableCells(scale string, k key) (keys []key) {
	for _, m := range append(private, noDP) {
		of := t.settings(scale, m)
		if m == noDP { // no budget, so the same for all
			if k.Epsilon == t.epsilons[0] && scale != lab.Smoke {
				keys = append(keys, nonPrivate(k, of)...)
			}
			continue
		}
		keys = append(keys, gridCells(k, m, 5, of)...)
		if m == threshold { // the clip is not searched: as many runs as Online has
			keys = append(keys, shared(k, m, 5, clipGiven(of))...)
		}
	}
	return keys
}

// aloneCells are what one run's budget would give at one epsilon.
func (t task) aloneCells(scale string, k key) (keys []key) {
	for _, m := range private {
		if scale == lab.Grids || m == online || m == threshold {
			keys = append(keys, shared(k, m, 1, t.settings(scale, m))...)
		}
	}
	return keys
}

// settings are those of a method's grid, k = 5, that a scale computes.
func (t task) settings(scale string, m method) []setting {
	switch {
	case scale == lab.Smoke:
		return gridOf(m, 5)[2:3]
	case scale == lab.Quick && t.quick.settings != nil:
		return t.quick.settings[m]
	case scale == lab.Grids || t.whole:
		return gridOf(m, 5)
	}
	return t.likely[m]
}

// ends says whether an epsilon is the task's smallest or largest.
func (t task) ends(epsilon float64) bool {
	return epsilon == t.epsilons[0] || epsilon == t.epsilons[len(t.epsilons)-1]
}

// clipGiven are the settings with the clip that Online starts from.
func clipGiven(of []setting) (out []setting) {
	for _, s := range of {
		if s.Clip == startClip {
			out = append(out, s)
		}
	}
	return out
}

// gridCells share the budget of a whole grid, shared that of so many runs.
func gridCells(k key, m method, points int, of []setting) []key {
	return shared(k, m, runsOf(m, points), of)
}

func shared(k key, m method, runs int, of []setting) (keys []key) {
	k.Method, k.Runs = m, runs
	for _, k.Setting = range of {
		keys = append(keys, k)
	}
	return keys
}

func nonPrivate(k key, of []setting) []key {
	k.Epsilon = 0
	return shared(k, noDP, 0, of)
}

// armCells take Online apart, with one run's budget at epsilon 3.
func (t task) armCells(k key) (keys []key) {
	if !t.apart {
		return nil
	}
	k.Epsilon, k.Runs, k.Setting = armEpsilon, 1, armSetting
	for _, a := range armOf {
		k.Method, k.Arm = a.method, a.arm
		keys = append(keys, k)
	}
	return keys
}

// thesisCells are the thesis's own best settings of k = 5, with the momentum that it
// probably had.
func (t task) thesisCells(k key) (keys []key) {
	for _, f := range t.table(5).Rows {
		if f.Epsilon == k.Epsilon && t.ends(f.Epsilon) && f.Method != adamWOSM { // which has a moment of its own
			k.Method, k.Runs, k.Momentum, k.Setting = f.Method, runsOf(f.Method, 5), momentum, f.setting()
			keys = append(keys, k)
		}
	}
	return keys
}

// momentum is what the thesis does not state.
const momentum = 0.9
