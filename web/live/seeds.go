package live

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/sim"
)

// seedFolder is a run of `coterie run --seeds`.
var seedFolder = regexp.MustCompile(`^seed-([0-9]+)$`)

// seedsOf are the runs of a folder of seeds, in the order of the seeds.
func seedsOf(f folder) (names []string) {
	for _, name := range f.inside {
		if seedFolder.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		x, _ := strconv.ParseUint(seedFolder.FindStringSubmatch(a)[1], 10, 64)
		y, _ := strconv.ParseUint(seedFolder.FindStringSubmatch(b)[1], 10, 64)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return names
}

// seeds are the finished ones of a folder of seeds.
func (f *Folder) seeds(t thing) (names []string, done []*sim.Result) {
	f.scanner.mu.Lock()
	names = seedsOf(f.known[t.id])
	f.scanner.mu.Unlock()
	for _, name := range names {
		if res, err := f.result(thing{id: path.Join(t.id, name)}); err == nil && res != nil {
			done = append(done, res)
		}
	}
	return names, done
}

func (f *Folder) describeSeeds(t thing, r *row) error {
	names, done := f.seeds(t)
	r.Lines = []string{fmt.Sprintf("%s of %s have ended", prose.Count(len(done)), prose.Counted(len(names), "seed", "seeds"))}
	if r.State != finished {
		r.Meter = newMeter(float64(len(done)), float64(len(names)), r.Lines[0])
	}
	if len(done) > 0 {
		r.Name = done[0].Name + ", " + r.Name
		mean, half := metrics.Spread(figuresBySeed(done))
		r.Lines = append(r.Lines, "mean "+figureName(done[0].Metrics)+" "+withInterval(mean, half))
	}
	f.addCrew(t, r)
	return nil
}

func figureName(m sim.Metrics) string {
	if m.Error != nil {
		return "error"
	}
	return "loss"
}

func figuresBySeed(done []*sim.Result) (out []float64) {
	for _, r := range done {
		v := float64(r.Metrics.Loss)
		if r.Metrics.Error != nil {
			v = float64(*r.Metrics.Error)
		}
		out = append(out, v)
	}
	return out
}

func withInterval(mean, half float64) string {
	if math.IsNaN(half) {
		return prose.Rounded(mean)
	}
	return prose.Rounded(mean) + " ± " + prose.Rounded(half)
}

// seedsView is one run file with several seeds: their mean with its interval.
func (f *Folder) seedsView(t thing) (View, error) {
	r := f.row(t)
	names, done := f.seeds(t)
	one := stand{State: r.State, Words: r.Lines[0], Meter: newMeter(float64(len(done)), float64(len(names)), r.Lines[0])}
	if len(done) > 0 {
		one.Words += ", " + r.Lines[1]
	}
	var p parts
	p.add("stand", standTemplate, one)
	panels, err := study.Panels(seedCharts(done))
	if err != nil {
		return View{}, err
	}
	if len(panels) > 0 {
		p.add("curves", curvesTemplate, curves{ID: "curves-h", Name: "Curves", Only: true, Panels: panels, Note: "Means over the seeds that have ended and have made the round, with 95 % intervals."})
	}
	f.crewTable(t, &p)
	g := group{ID: "seeds", Name: "Every seed", Total: len(names)}
	for _, name := range names[:min(len(names), mostPeople)] {
		g.Rows = append(g.Rows, f.seedRow(path.Join(t.id, name)))
	}
	p.add("every", listTemplate, g)
	return View{Title: r.Name, Lead: t.id, Status: r.Name + ": " + r.Lines[0] + ".", Parts: p.list}, p.err
}

// seedRow is one seed: what came out, or how far it is.
func (f *Folder) seedRow(id string) row {
	sub := thing{id: id, kind: aRun}
	r := row{Name: path.Base(id), To: to("", sub), State: finished}
	if s, err := f.summary(sub); err == nil {
		r.Lines = []string{fmt.Sprintf("%s, %s", prose.Counted(s.Rounds, "round", "rounds"), figure(s.Metrics)), "epsilon " + prose.Cost(float64(s.Privacy.Epsilon)) + " (" + layout.Claimed(s.Privacy.Statement) + ")"}
		return r
	}
	r.State = state{"not ended", "stopped"}
	f.scanner.mu.Lock()
	at := slices.IndexFunc(f.scanner.all, func(t thing) bool { return t.id == id })
	if at >= 0 {
		sub = f.scanner.all[at]
	}
	f.scanner.mu.Unlock()
	if at >= 0 && sub.kind == aRun && sub.alive(time.Now()) {
		now := f.row(sub)
		r.State, r.Lines, r.Meter = now.State, now.Lines, now.Meter
	}
	return r
}

// seedCharts are the judge's loss and error, round by round, over seeds.
func seedCharts(done []*sim.Result) (out []study.Chart) {
	if len(done) < 2 {
		return nil
	}
	for _, c := range []struct {
		title, y string
		at       func(sim.RoundRecord) float64
	}{
		{"Loss, by the judge", "loss", func(r sim.RoundRecord) float64 { return float64(r.Loss) }},
		{"Share of wrong answers", "error", func(r sim.RoundRecord) float64 {
			if r.Error == nil {
				return math.NaN()
			}
			return float64(*r.Error)
		}},
	} {
		byRound := map[int][]float64{}
		for _, res := range done {
			for _, r := range res.History.Rounds {
				if v := c.at(r); !math.IsNaN(v) && !math.IsInf(v, 0) {
					byRound[r.Round] = append(byRound[r.Round], v)
				}
			}
		}
		series := study.Series{Name: prose.Method(done[0].Algorithm)}
		for round, values := range byRound {
			mean, half := metrics.Spread(values)
			p := study.Point{X: float64(round), Y: mean, Low: mean, High: mean}
			if !math.IsNaN(half) {
				p.Low, p.High = mean-half, mean+half
			}
			series.Points = append(series.Points, p)
		}
		if len(series.Points) > 0 {
			out = append(out, study.Chart{Title: c.title, XTitle: "round", YTitle: c.y, Series: []study.Series{series}})
		}
	}
	return out
}
