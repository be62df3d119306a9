package tuning

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/sweep"
)

// short is a key without the blocks that it stands in.
func short(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

func settingWords(settings map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		parts = append(parts, short(key)+" "+settings[key])
	}
	return prose.Joined(parts)
}

// settingsTable has every point of the grid in a row, in the order of the file.
func settingsTable(r sweep.Result) layout.Table {
	t := layout.Table{ID: "settings-h"}
	for i, key := range slices.Sorted(maps.Keys(r.Points[0].Settings)) {
		layout.AddColumn(&t, short(key), i > 0, r.Points, func(p sweep.PointResult) layout.Cell { return layout.Words(p.Settings[key]) })
	}
	means := make([]string, len(r.Points))
	for i, p := range r.Points {
		means[i] = prose.Significant(float64(p.Mean), 4)
	}
	at := 0
	layout.AddColumn(&t, capital(metricWords(r)), true, r.Points, func(sweep.PointResult) layout.Cell {
		c := layout.Words(means[at])
		if c.Strong = at == r.Best; c.Strong {
			c.Small = []string{"the best"}
		}
		at++
		return c
	})
	if r.Seeds > 1 {
		layout.AddColumn(&t, "Deviation", true, r.Points, func(p sweep.PointResult) layout.Cell {
			return layout.Words(prose.Rounded(float64(p.SD)))
		})
	}
	if r.Chosen != nil && r.Seeds > 1 {
		times := make([]int, len(r.Points))
		for _, i := range r.Chosen.Points {
			times[i]++
		}
		at = 0
		layout.AddColumn(&t, "Chosen by seeds", true, r.Points, func(sweep.PointResult) layout.Cell {
			c := layout.Words(prose.Count(times[at]))
			at++
			return c
		})
	}
	return t
}

// growthChart is how prices rise with the number of runs.
func growthChart(r sweep.Result) []study.Chart {
	if len(r.Growth) < 2 {
		return nil
	}
	grid, random := study.Series{Name: "every run counted"}, study.Series{Name: "random stopping, as many on average"}
	add := func(s *study.Series, runs int, y event.Number) {
		s.Points = append(s.Points, study.Point{X: float64(runs), Y: float64(y), Low: float64(y), High: float64(y)})
	}
	for _, g := range r.Growth {
		add(&grid, g.Runs, g.Grid)
		if g.Random != nil {
			add(&random, g.Runs, *g.Random)
		}
	}
	c := study.Chart{
		Title: "Epsilon by the number of runs, at the noise of these", XTitle: "runs", YTitle: "epsilon", LogX: true, LogY: true, Series: []study.Series{grid},
		Note: fmt.Sprintf("Of the participant that pays the most (%s). This grid has %s.", layout.Claimed(r.Prices[1].Privacy), prose.Counted(len(r.Points), "run", "runs")),
	}
	if len(random.Points) > 0 {
		c.Series = append(c.Series, random)
	}
	return []study.Chart{c}
}

// mostCurves are as many settings beside an axis as a reader can tell apart.
const mostCurves = 12

// figureCharts show the figure along every axis of the grid that has numbers: a curve for
// each setting of the others.
func figureCharts(r sweep.Result) (out []study.Chart) {
	for _, axis := range slices.Sorted(maps.Keys(r.Points[0].Settings)) {
		values := map[float64]bool{}
		curves := map[string]*study.Series{}
		var names []string
		numbers, positive := true, true
		for _, p := range r.Points {
			x, err := strconv.ParseFloat(p.Settings[axis], 64)
			numbers = numbers && err == nil && !math.IsInf(x, 0) && !math.IsNaN(x)
			positive = positive && x > 0
			values[x] = true
			others := maps.Clone(p.Settings)
			delete(others, axis)
			name := settingWords(others)
			if curves[name] == nil {
				curves[name] = &study.Series{Name: name}
				names = append(names, name)
			}
			low, high := spread(p)
			curves[name].Points = append(curves[name].Points, study.Point{X: x, Y: float64(p.Mean), Low: low, High: high})
		}
		if !numbers || len(values) < 2 || len(names) > mostCurves {
			continue
		}
		xs := slices.Sorted(maps.Keys(values))
		c := study.Chart{
			Title: fmt.Sprintf("%s by %s", capital(metricWords(r)), short(axis)), XTitle: axis, YTitle: metricWords(r),
			LogX: positive && xs[len(xs)-1]/xs[0] >= 8,
		}
		if r.Seeds > 1 {
			c.Note = "Means, with the range over seeds."
		}
		for _, name := range names {
			if curves[name].Name == "" {
				curves[name].Name = metricWords(r)
			}
			c.Series = append(c.Series, *curves[name])
		}
		out = append(out, c)
	}
	return out
}

// spread is the range over seeds.
func spread(p sweep.PointResult) (low, high float64) {
	low, high = float64(p.Values[0]), float64(p.Values[0])
	for _, v := range p.Values {
		low, high = min(low, float64(v)), max(high, float64(v))
	}
	return low, high
}
