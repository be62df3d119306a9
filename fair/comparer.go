package fair

import "fmt"

// comparer works the panels of a comparison out: one for each group, and one,
// the last, for all rows.
type comparer struct {
	sample    *sample
	models    []ModelLoss
	names     []string
	value     []float64
	rows      []int        // of each panel
	clients   [][]standing // of each panel
	overall   []float64    // the sums over all groups, while measuring
	resampled *resampled
}

// standing is how the models stand for some clients: their mean losses there.
type standing struct {
	means   []float64
	clients int
}

func newComparer(s *sample, models []ModelLoss, names []string) *comparer {
	width := s.kinds.width
	c := &comparer{sample: s, models: models, names: names, overall: make([]float64, width)}
	totals := make([]float64, s.groups*width)
	s.columns().totals(s.copies, totals)
	c.value = make([]float64, c.size())
	c.measure(totals, c.value)
	for g := range names {
		c.rows = append(c.rows, int(totals[g*width]))
	}
	c.rows = append(c.rows, s.rows)

	c.clients = make([][]standing, len(names)+1)
	overall := make([]float64, width)
	for kind, n := range s.copies {
		clear(overall)
		group, sums := s.kinds.unit(int32(kind))
		for i, g := range group {
			cell := sums[i*width:][:width]
			for j, v := range cell {
				overall[j] += v
			}
			c.clients[g] = append(c.clients[g], standing{means(cell), int(n)})
		}
		c.clients[len(names)] = append(c.clients[len(names)], standing{means(overall), int(n)})
	}
	return c
}

func means(cell []float64) []float64 {
	out := make([]float64, len(cell)-1)
	for m := range out {
		out[m] = cell[1+m] / cell[0]
	}
	return out
}

// panelSize is the mean of each model and the difference of each pair.
func (c *comparer) panelSize() int { return len(c.models) * (len(c.models) + 1) / 2 }
func (c *comparer) size() int      { return (len(c.names) + 1) * c.panelSize() }

// measure works out all panels. A group of which no unit was drawn gives 0/0, NaN.
func (c *comparer) measure(totals, out []float64) {
	width := c.sample.kinds.width
	clear(c.overall)
	for g := range c.names {
		cell := totals[g*width:][:width]
		for i, v := range cell {
			c.overall[i] += v
		}
		c.measurePanel(cell, out[g*c.panelSize():])
	}
	c.measurePanel(c.overall, out[len(c.names)*c.panelSize():])
}

func (c *comparer) measurePanel(cell, out []float64) {
	pair := len(c.models)
	for m := range c.models {
		out[m] = cell[1+m] / cell[0]
		for base := range m {
			out[pair] = out[m] - out[base]
			pair++
		}
	}
}

func (c *comparer) panel(p int, name string) Panel {
	out := Panel{Group: name, Rows: c.rows[p]}
	clients := c.clients[p]
	for _, s := range clients {
		out.Clients += s.clients
	}
	estimate := func(figure int) Estimate {
		figure += p * c.panelSize()
		e := Estimate{Value: number(c.value[figure])}
		e.fillInterval(c.resampled, figure, []basis{{where: fmt.Sprintf("in group %q", name), sort: anyRow, units: out.Clients}})
		return e
	}
	level := c.resampled.Level

	best, noBest := bestCounts(clients, len(c.models))
	out.NoBest = float64(noBest) / float64(out.Clients)
	pair := len(c.models)
	for m, model := range c.models {
		out.Models = append(out.Models, ModelMean{Name: model.Name, MeanLoss: estimate(m), Best: share(best[m], out.Clients, level)})
		for base := range m {
			better, worse := pairCounts(clients, m, base)
			difference := estimate(pair)
			out.Pairs = append(out.Pairs, Pair{
				Model: model.Name, Baseline: c.models[base].Name,
				Difference: difference, Verdict: verdict(difference),
				Better: share(better, out.Clients, level), Worse: share(worse, out.Clients, level),
				Same: float64(out.Clients-better-worse) / float64(out.Clients),
			})
			pair++
		}
	}
	return out
}

// bestCounts counts the clients for whom each model alone is best, and those for
// whom none is.
func bestCounts(clients []standing, models int) (best []int, none int) {
	best = make([]int, models)
	for _, s := range clients {
		winner, alone := 0, true
		for m := 1; m < models; m++ {
			if s.means[m] == s.means[winner] {
				alone = false
			} else if s.means[m] < s.means[winner] {
				winner, alone = m, true
			}
		}
		if alone {
			best[winner] += s.clients
		} else {
			none += s.clients
		}
	}
	return best, none
}

func pairCounts(clients []standing, model, base int) (better, worse int) {
	for _, s := range clients {
		if s.means[model] < s.means[base] {
			better += s.clients
		} else if s.means[model] > s.means[base] {
			worse += s.clients
		}
	}
	return better, worse
}
