package groupprivacy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/sim"
)

// course is how a run of figure 1 went.
type course struct {
	Loss    []event.Number   `json:"loss"`    // by round
	Leakage [][]event.Number `json:"leakage"` // by round and cluster; null: nothing is protected
	Early   []sim.Release    `json:"early"`
	Late    []sim.Release    `json:"late"`
	Start   [][]float64      `json:"start"`
	End     [][]float64      `json:"end"`
	Truth   [][]float64      `json:"truth"`
	Parted  float64          `json:"parted"` // training clients that choose their group's model
}

func courseOf(l *lab.Lab, run config.Run) (course, error) {
	s, err := l.Finish(run)
	if err != nil {
		return course{}, err
	}
	defer s.Close()
	res, err := s.Result()
	if err != nil {
		return course{}, err
	}
	h := res.History
	c := course{Early: h.Early, Late: h.Late, Start: h.Start, End: h.Returned, Truth: h.Truth}
	for _, r := range h.Rounds {
		c.Loss, c.Leakage = append(c.Loss, r.Loss), append(c.Leakage, r.MaxLeakage)
	}
	c.Parted, err = parted(s.Federation(), s.Returned())
	return c, err
}

// parted is the share of training clients of two groups that choose their own group's model,
// whichever of the two that is: a half where the models tell the groups apart no better than
// chance, or where there is one.
func parted(f *data.Federation, hypotheses []float64) (float64, error) {
	m := model.Linear{Features: f.Features}
	learner, err := m.Learner()
	if err != nil {
		return 0, err
	}
	same := 0
	for i := range f.Train {
		_, best, err := model.Best(learner, m.Parameters(), hypotheses, &f.Train[i])
		if err != nil {
			return 0, err
		}
		if best == f.Train[i].Group {
			same++
		}
	}
	return float64(max(same, len(f.Train)-same)) / float64(len(f.Train)), nil
}

// coursesOf are how the runs of figure 1 went, by method and seed.
func coursesOf(l *lab.Lab, runs []config.Run) ([][]course, error) {
	for i := range runs {
		runs[i].Name = "synthetic-course"
	}
	return lab.Grid(l, runs, courseOf)
}

// between is where the first model lies on the way from one optimum (0) to the other (1).
func (c course) between() float64 {
	var along, whole float64
	for i := range c.Truth[0] {
		way := c.Truth[1][i] - c.Truth[0][i]
		along += way * (c.End[0][i] - c.Truth[0][i])
		whole += way * way
	}
	return along / whole
}

// courseCharts are figures 1 and 2, laid out as in the papers: of each method the vectors
// that clients release, at first and at last, in the plane with both optima, and the loss;
// then the largest leakage by cluster.
func courseCharts(of []variant, all [][]course) []study.Chart {
	var charts []study.Chart
	longest := 0
	for _, c := range slices.Concat(all...) {
		longest = max(longest, len(c.Loss))
	}
	for i, v := range of {
		one := middling(all[i])
		title := func(column int, what string) string {
			return fmt.Sprintf("Figure 1 %c: %s, %s", 'a'+3*i+column, v.label, what)
		}
		charts = append(charts,
			one.plane(title(0, "the first rounds"), one.Early, one.Start, "models at the start"),
			one.plane(title(1, "the last rounds"), one.Late, one.End, "models at the end"),
			study.Chart{
				Title: title(2, "loss on validation clients"), XTitle: "round", YTitle: "validation RMSE, in units of y",
				Note:   "median and the middle 80 % of the seeds; a run that has ended keeps the loss of the models it returns",
				Series: []study.Series{lossOverRounds(v.label, all[i], longest)},
			})
	}
	// Planes have the same axes, and so have losses: they are there to be compared.
	sameAxes(charts, func(i int) bool { return i%3 < 2 })
	sameAxes(charts, func(i int) bool { return i%3 == 2 })
	private := middling(all[len(of)-1])
	leakage := study.Chart{
		Title: "Figure 2: largest leakage of a client, by cluster", XTitle: "round", YTitle: "epsilon at the radius, heuristic",
		Note: "group-private, the seed with the median loss; it is constant while whoever lost most is not asked",
	}
	for j := range private.End {
		s := study.Series{Name: fmt.Sprintf("cluster %d", j+1)}
		for round, by := range private.Leakage {
			s.Points = append(s.Points, lab.Exactly(float64(by[j])).At(float64(round+1)))
		}
		leakage.Series = append(leakage.Series, s)
	}
	return append(charts, leakage)
}

// sameAxes lets the charts reach what any of them does.
func sameAxes(charts []study.Chart, these func(i int) bool) {
	var reach []study.Point
	for i, c := range charts {
		for _, s := range c.Series {
			for _, p := range s.Points {
				if these(i) {
					reach = append(reach, p, lab.Exactly(p.Low).At(p.X), lab.Exactly(p.High).At(p.X))
				}
			}
		}
	}
	for i := range charts {
		if these(i) {
			charts[i].Reach = hull(reach)
		}
	}
}

// hull are two corners of what holds all places.
func hull(points []study.Point) []study.Point {
	low, high := points[0], points[0]
	for _, p := range points {
		low.X, low.Y = min(low.X, p.X), min(low.Y, p.Y)
		high.X, high.Y = max(high.X, p.X), max(high.Y, p.Y)
	}
	return []study.Point{lab.Exactly(low.Y).At(low.X), lab.Exactly(high.Y).At(high.X)}
}

// middling is the run whose last loss is the median of all.
func middling(all []course) course {
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b course) int { return cmp.Compare(a.Loss[len(a.Loss)-1], b.Loss[len(b.Loss)-1]) })
	return order[len(order)/2]
}

// plane is released vectors by cluster, the server's models, and the truth.
func (c course) plane(title string, releases []sim.Release, models [][]float64, which string) study.Chart {
	chart := study.Chart{Title: title, XTitle: "first parameter", YTitle: "second parameter", Note: "the seed with the median loss; five rounds of seven clients"}
	for j := range c.End {
		s := study.Series{Name: fmt.Sprintf("cluster %d", j+1), Loose: true}
		for _, r := range releases {
			if r.Cluster == j {
				s.Points = append(s.Points, lab.Exactly(r.At[1]).At(r.At[0]))
			}
		}
		chart.Series = append(chart.Series, s)
	}
	places := func(name string, of [][]float64) study.Series {
		s := study.Series{Name: name, Loose: true}
		for _, at := range of {
			s.Points = append(s.Points, lab.Exactly(at[1]).At(at[0]))
		}
		return s
	}
	// The truth first: a colour of its own on all planes.
	chart.Series = append(chart.Series, places("true parameters", c.Truth), places(which, models))
	return chart
}

// lossOverRounds is the loss over seeds, for as many rounds. A run that has ended keeps the
// loss of the models that it returns: left out, the others would look worse and worse.
func lossOverRounds(name string, all []course, rounds int) study.Series {
	s := study.Series{Name: name}
	for round := range rounds {
		values := lab.Pick(all, func(c course) float64 {
			if round < len(c.Loss) {
				return float64(c.Loss[round])
			}
			return float64(slices.Min(c.Loss))
		})
		s.Points = append(s.Points, lab.Quantiles(values).At(float64(round+1)))
	}
	return s
}
