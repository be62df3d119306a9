package boundeddp

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// figure is figure 5.4 for one network: alignments by partition, then by seed.
type figure struct {
	of    network
	steps int
	cells map[partition][]aligned
}

// figures54 prepares the figure's trainings.
func figures54(l *lab.Lab, s scale, pool []pictures) (out []figure, jobs []func() error, err error) {
	for _, of := range s.networks {
		f := figure{of: of, steps: s.steps, cells: map[partition][]aligned{}}
		run, err := base(of)
		if err != nil {
			return nil, nil, err
		}
		lab.Unprotected(&run)
		run.Algorithm.Rounds, run.Algorithm.Local.Batch = s.steps, 32
		if run, err = l.Resolve(run); err != nil {
			return nil, nil, err
		}
		for _, how := range partitions {
			cells := make([]aligned, l.Seeds)
			f.cells[how] = cells
			for seed := range cells {
				one := run
				one.Seed = uint64(seed + 1)
				jobs = append(jobs, func() error {
					return l.Remember([]any{"bounded-dp", "figure 5.4", how, s.aligned, one}, &cells[seed], func(l *lab.Lab) (any, error) {
						clients, err := deal(pool[seed].writers, how, s.aligned, 0, one.Seed)
						if err != nil {
							return nil, err
						}
						return figure54(l, one, pool[seed], clients)
					})
				})
			}
		}
		out = append(out, f)
	}
	return out, jobs, nil
}

// over is a figure's mean over some rounds, by seed.
func over(cells []aligned, of func(aligned) []float64, from, to int) lab.Spread {
	return lab.MeanAndDeviation(lab.Pick(cells, func(a aligned) float64 {
		v := of(a)
		return average(v[min(from, len(v)-1):min(to, len(v))])
	}))
}

func updates(a aligned) []float64  { return a.Updates }
func examples(a aligned) []float64 { return a.Examples }

// early and late are the rounds that claims compare.
func (f figure) early() (from, to int) { return 0, min(5, f.steps) }
func (f figure) late() (from, to int)  { return f.steps - max(1, f.steps/5), f.steps }

// aligning is what a cosine must differ by to be called so.
const aligning = 0.1

func (f figure) rows() (rows []study.Row) {
	section := fmt.Sprintf("Figure 5.4, %s", f.of)
	for _, how := range partitions {
		cells := f.cells[how]
		for _, part := range []struct {
			name     string
			from, to int
		}{{"first 5 rounds", 0, min(5, f.steps)}, {"last fifth of the rounds", f.steps - max(1, f.steps/5), f.steps}} {
			for _, of := range []struct {
				metric string
				of     func(aligned) []float64
			}{{"cosine of two updates", updates}, {"cosine of two examples' gradients", examples}} {
				rows = append(rows, lab.Measured(study.Row{
					Section: section, Label: fmt.Sprintf("%s, %s", how, part.name), Metric: of.metric, Unit: "cosine", Verdict: study.NoNumber, Note: "the text lacks the figure",
				}, over(cells, of.of, part.from, part.to)))
			}
		}
		rows = append(rows, f.claims(section+": what the text claims", how)...)
	}
	return rows
}

// claims are the text's on one partition.
func (f figure) claims(section string, how partition) []study.Row {
	cells := f.cells[how]
	from, to := f.early()
	lateFrom, lateTo := f.late()
	apart := lab.Pick(cells, func(a aligned) float64 { return average(a.Updates[from:to]) - average(a.Examples[from:to]) })
	fall := lab.Pick(cells, func(a aligned) float64 { return average(a.Updates[from:to]) - average(a.Updates[lateFrom:lateTo]) })
	narrow := lab.Pick(cells, func(a aligned) float64 {
		least := math.Inf(1)
		for _, angle := range a.Angle {
			least = min(least, math.Sin(min(angle, 90)*math.Pi/180))
		}
		return least
	})
	row := func(label, metric, unit, sentence, note, why string) study.Row {
		return study.Row{Section: section, Label: fmt.Sprintf("%s: %s", how, label), Metric: metric, Unit: unit, Sentence: sentence, Note: note, Why: why}
	}
	above := fmt.Sprintf("agrees: the whole 95 %% interval over seeds above %v", aligning)
	unlike, fallen := noReason, noReason
	if how == byLabel {
		unlike = "We believe that clients of two classes each pull towards their own: agreement is that of clients whose data are alike. Tested by the same pictures dealt at random and by writer, whose updates agree at first."
		fallen = "We believe that what hardly agrees at first, since clients have two classes each, has little to lose. Tested by the same pictures dealt at random and by writer, whose agreement falls."
	}
	return []study.Row{
		lab.Effect(row("updates minus examples, first 5 rounds", "difference", "cosine", "section 5.3: considerably larger alignment of local updates than of gradients", above, unlike), apart, aligning),
		lab.Effect(row("updates, first 5 rounds minus the last fifth", "difference", "cosine", "section 5.3: diminishing agreement at later stages", above, fallen), fall, aligning),
		lab.AtMost(row("least diameter of a sector around the round's own mean with all updates in it", "over 2C", "ratio", "section 5.3: in a sector sensitivity is greatly reduced",
			"agrees: the whole 95 % interval over seeds below a half, in any round; around the last round's mean it is more",
			"We believe that updates in so many dimensions stand at large angles to their mean, however much they agree: a sector that holds them all is nearly the ball. Tested by the chart of the largest angle, round by round."), narrow, 0.5),
	}
}

// noReason is said where nobody has found out.
const noReason = "No reason is known beside too few seeds."

func (f figure) charts() []study.Chart {
	rounds := make([]float64, f.steps)
	for i := range rounds {
		rounds[i] = float64(i + 1)
	}
	cosine := study.Chart{Title: fmt.Sprintf("Figure 5.4, %s", f.of), XTitle: "round", YTitle: "mean cosine of all pairs", Note: "mean and one standard deviation over seeds"}
	angle := study.Chart{Title: fmt.Sprintf("Largest angle to the mean update, %s", f.of), XTitle: "round", YTitle: "degrees", Note: "a sector with all updates in it is at least so wide; at 90 its diameter is the ball's"}
	at := func(how partition, of func(aligned) []float64) func(i int) lab.Spread {
		return func(i int) lab.Spread {
			return lab.MeanAndDeviation(lab.Pick(f.cells[how], func(a aligned) float64 { return of(a)[i] }))
		}
	}
	for _, how := range partitions {
		cosine.Series = append(cosine.Series, lab.Curve("updates, "+string(how), rounds, at(how, updates)))
		largest := lab.Curve(string(how), rounds, at(how, func(a aligned) []float64 { return a.Angle }))
		largest.Of = "updates, " + string(how)
		angle.Series = append(angle.Series, largest)
	}
	cosine.Series = append(cosine.Series, lab.Curve("examples' gradients", rounds, at(byChance, examples)))
	return []study.Chart{cosine, angle}
}
