package clipping

import (
	"maps"
	"slices"

	"github.com/coterie-fl/coterie/repro/lab"
)

// book is what is finished.
type book struct {
	task    task
	cells   map[key]record
	changed string // by --set and by the scale: cells of other settings are not looked at
	whole   bool   // runs are as long as the thesis's
}

// row is what a table's place asks for: the cells of a method that share a budget.
type row struct {
	method   method
	arm      arm
	epsilon  float64
	runs     int
	momentum float64
	steps    int
}

// group is one setting with its seeds.
type group struct {
	row     row
	setting setting
	cells   map[uint64]record // by seed
}

// groups are the settings that a place of a table has finished cells of.
func (b book) groups(r row) []group {
	of := map[setting]group{}
	for k, c := range b.cells {
		if k.Study != b.task.kind || k.Changed != b.changed || (row{k.Method, k.Arm, k.Epsilon, k.Runs, k.Momentum, k.Steps}) != r {
			continue
		}
		g, ok := of[k.Setting]
		if !ok {
			g = group{r, k.Setting, map[uint64]record{}}
			of[k.Setting] = g
		}
		g.cells[k.Seed] = c
	}
	return slices.SortedFunc(maps.Values(of), func(a, b group) int { return compareSettings(a.setting, b.setting) })
}

func compareSettings(a, b setting) int {
	return slices.Compare([]float64{a.Step, a.Clip, a.Quantile}, []float64{b.Step, b.Clip, b.Quantile})
}

// expected are the settings that a place's best one is sought among at full scale.
func (t task) expected(r row) []setting {
	k, given := 5, r.method == threshold && r.runs == runsOf(online, 5)
	if r.runs == runsOf(r.method, 9) {
		k = 9
	}
	of := t.likely[r.method]
	if t.whole || k == 9 {
		of = gridOf(r.method, k)
	}
	if given {
		return clipGiven(of)
	}
	return of
}

// complete says whether a place has finished cells of all settings that its best one is
// sought among: before, the best of them may be any.
func (b book) complete(r row) bool {
	for _, s := range b.task.expected(r) {
		if _, ok := b.at(r, s); !ok {
			return false
		}
	}
	return true
}

// at is a place's group of one setting.
func (b book) at(r row, s setting) (g group, ok bool) {
	for _, g := range b.groups(r) {
		if g.setting == s {
			return g, true
		}
	}
	return group{}, false
}

// best is the setting with the best mean over seeds, among those with the most seeds: one
// seed alone is better by luck.
func (b book) best(r row) (best group, ok bool) {
	return bestOf(b.groups(r), b.task.better)
}

func bestOf(groups []group, better func(a, b float64) bool) (best group, ok bool) {
	for _, g := range groups {
		switch more := len(g.cells) - len(best.cells); {
		case more > 0, more == 0 && better(g.mean(), best.mean()):
			best, ok = g, true
		}
	}
	return best, ok
}

// alike are how many of a place's finished cells have their batches and noise in common
// with another of the same seed: of these the grid's one budget is arithmetic, since the
// prices of runs add up only if each is drawn for itself. With a budget of one run each is
// priced alone, and nothing is added up.
func (b book) alike(r row) (n int) {
	if r.runs <= 1 {
		return 0
	}
	type draw struct {
		seed uint64
		run  int
	}
	by := map[draw]int{}
	for _, g := range b.groups(r) {
		for seed, c := range g.cells {
			by[draw{seed, c.Value.Run}]++
		}
	}
	for _, cells := range by {
		if cells > 1 {
			n += cells
		}
	}
	return n
}

// places are those that have finished cells.
func (b book) places() []row {
	of := map[row]bool{}
	for k := range b.cells {
		if k.Study == b.task.kind && k.Changed == b.changed {
			of[row{k.Method, k.Arm, k.Epsilon, k.Runs, k.Momentum, k.Steps}] = true
		}
	}
	return slices.Collect(maps.Keys(of))
}

// better says whether a figure is better than another.
func (t task) better(a, b float64) bool {
	if t.lower {
		return a < b
	}
	return a > b
}

// seeds are in order.
func (g group) seeds() []uint64 { return slices.Sorted(maps.Keys(g.cells)) }

// figures are of the last models, in the order of seeds.
func (g group) figures() []float64 {
	return lab.Pick(g.seeds(), func(seed uint64) float64 { return float64(g.cells[seed].Value.Figure) })
}

// best is the mean of the best judgements.
func (g group) best() float64 {
	return lab.MeanAndDeviation(lab.Pick(g.seeds(), func(seed uint64) float64 { return float64(g.cells[seed].Value.Best) })).Middle
}

func (g group) mean() float64 { return g.spread().Middle }

func (g group) spread() lab.Spread { return lab.MeanAndDeviation(g.figures()) }

// first is the cell of the first seed: what has no mean is shown of it.
func (g group) first() record { return g.cells[g.seeds()[0]] }

// advantage is how much better a is than b over the seeds that both have: points of
// accuracy, or per cent of b's error that a has less. ok is false without such seeds.
func (t task) advantage(a, b group) (s lab.Spread, ok bool) {
	var d []float64
	for _, seed := range a.seeds() {
		other, both := b.cells[seed]
		if !both {
			continue
		}
		x, y := float64(a.cells[seed].Value.Figure), float64(other.Value.Figure)
		if d = append(d, x-y); t.lower {
			d[len(d)-1] = 100 * (1 - x/y)
		}
	}
	if len(d) == 0 {
		return lab.Spread{}, false
	}
	return lab.MeanAndDeviation(d), true
}
