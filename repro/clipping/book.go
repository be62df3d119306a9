package clipping

import (
	"maps"
	"math"
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

// expected are the settings that a place's best one is sought among at full scale: with
// momentum the thesis's own.
func (t task) expected(r row) []setting {
	if r.momentum > 0 {
		f, ok := t.table(5).at(r.method, r.epsilon)
		if !ok {
			return nil
		}
		return []setting{f.setting()}
	}
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
func (b book) complete(r row) bool { return len(b.compared(r, b.groups(r))) > 0 }

// compared are the seeds of which a place has all settings that its best one is sought among.
func (b book) compared(r row, groups []group) (seeds []uint64) {
	of, wanted := map[uint64]int{}, b.task.expected(r)
	for _, g := range groups {
		if slices.Contains(wanted, g.setting) {
			for seed := range g.cells {
				of[seed]++
			}
		}
	}
	for seed, n := range of {
		if n == len(wanted) {
			seeds = append(seeds, seed)
		}
	}
	return seeds
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

// best is a place's best setting, with all its seeds: the one that further seeds were limited
// to where these are finished, else the best of those that can be compared.
func (b book) best(r row) (best group, ok bool) {
	best, ok = b.bestCompared(r)
	if limited, known := b.task.best[cellGroup{r.method, r.epsilon, r.runs}]; known && r.arm == "" && r.momentum == 0 {
		if g, found := b.at(r, limited); found && len(g.cells) > len(best.cells) {
			return g, true
		}
	}
	return best, ok
}

// bestCompared is the setting with the best mean over the seeds of which all settings are
// finished: whoever has one seed more than the others, as grids have that are being computed,
// is no better by that. Before there is such a seed it is the best of those with the most.
func (b book) bestCompared(r row) (best group, ok bool) {
	groups := b.groups(r)
	seeds := b.compared(r, groups)
	if len(seeds) == 0 {
		return mostSeeds(groups, b.task.better)
	}
	for _, g := range groups {
		if g.has(seeds) && (!ok || b.task.better(g.over(seeds), best.over(seeds))) {
			best, ok = g, true
		}
	}
	return best, ok
}

// mostSeeds is the best among those with the most seeds: one seed alone is better by luck.
func mostSeeds(groups []group, better func(a, b float64) bool) (best group, ok bool) {
	for _, g := range groups {
		switch more := len(g.cells) - len(best.cells); {
		case more > 0, more == 0 && better(g.mean(), best.mean()):
			best, ok = g, true
		}
	}
	return best, ok
}

// has says whether the group has cells of all these seeds, over is their mean.
func (g group) has(seeds []uint64) bool {
	return !slices.ContainsFunc(seeds, func(seed uint64) bool { _, ok := g.cells[seed]; return !ok })
}

func (g group) over(seeds []uint64) float64 {
	return lab.MeanAndDeviation(lab.Pick(seeds, func(seed uint64) float64 { return float64(g.cells[seed].Value.Figure) })).Middle
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

// advantages are how much better a is than b, seed by seed, over those that both have: points
// of accuracy, or the logarithm of b's error over a's, since errors are compared by ratios.
func (t task) advantages(a, b group) (d []float64) {
	for _, seed := range a.seeds() {
		other, both := b.cells[seed]
		if !both {
			continue
		}
		x, y := float64(a.cells[seed].Value.Figure), float64(other.Value.Figure)
		if d = append(d, x-y); t.lower {
			d[len(d)-1] = math.Log(y / x)
		}
	}
	return d
}

// told is an advantage as rows have it: points, or per cent of the other's error less.
func (t task) told(advantage float64) float64 {
	if t.lower {
		return 100 * (1 - math.Exp(-advantage))
	}
	return advantage
}

// measured is where an advantage lies that rows have as this.
func (t task) measured(told float64) float64 {
	if t.lower && !math.IsInf(told, 0) {
		return -math.Log(1 - told/100)
	}
	return told
}
