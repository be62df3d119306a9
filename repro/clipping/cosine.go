package clipping

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/sim"
)

var cosine = lab.Experiment{
	ID: "clipping-cosine", Title: "Is there a best clip? How near noised gradients are to the true one",
	Paper: "thesis 001, figure 3.1", Needs: digits.needs, Quick: "3 min", Full: "5 min",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 3, lab.Full: 3},
	Launch: runCosine,
}

// figure31 is what is run at a scale.
type figure31 struct {
	block  int   // steps between two looks
	blocks []int // after which the model is looked at
	draws  int
}

func figure31At(scale string) figure31 {
	switch scale {
	case lab.Smoke:
		return figure31{2, []int{1, 2}, 3}
	case lab.Quick:
		return figure31{50, []int{2, 5}, 20}
	}
	return figure31{50, []int{2, 5, 10, 15, 19}, 20}
}

// look is the model after so many steps: quantiles of the norms of a batch's gradients, and
// the mean cosine of noised and true mean gradient, by the clip.
type look struct {
	Steps  int        `json:"steps"`
	Norms  [3]float64 `json:"norms"` // 10, 50, 90 %
	Clips  []float64  `json:"clips"`
	Cosine []float64  `json:"cosine"`
	Spread []float64  `json:"spread"` // standard deviation over draws
}

func runCosine(l *lab.Lab) (study.Study, error) {
	f := figure31At(l.Scale)
	last := f.blocks[len(f.blocks)-1]
	noise, err := noiseFor(armEpsilon, 1, digits.steps(), mnistSize)
	if err != nil {
		return study.Study{}, err
	}
	run := config.Default(digits.kind, "central", "sound")
	run.Name, run.Algorithm.Rounds, run.Algorithm.Stop.Every = "clipping-cosine", last, last
	run.Algorithm.Local.Steps, run.Algorithm.Local.Batch, run.Algorithm.Local.Step = f.block, batch, 3.162
	run.Privacy.Epsilon, run.Privacy.NoiseMultiplier, run.Privacy.Delta, run.Privacy.Clip = 0, noise, delta, startClip
	if l.Scale == lab.Smoke {
		digits.shrink(&run)
	}
	cells, err := lab.Grid(l, []config.Run{run}, func(l *lab.Lab, run config.Run) ([]look, error) { return f.looks(l, run, noise) })
	if err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"A small clip bends the mean gradient, a large one brings more noise. At a few points of one private training, the gradients of a batch of 512 are clipped to many values of C and noised, and the cosine of the result with the batch's true mean gradient is taken, the mean of 20 draws of the noise.",
			"The thesis's claim: at every iteration there is a fairly prominent best C.",
		},
		Caveats: []string{
			fmt.Sprintf("The network and data are MNIST's; the thesis says only: a CNN for character recognition. One run at epsilon %v (example, add-remove, proved; delta %v): S %.3f, FixedThreshold with rho 3.162, C 0.1. The thesis names none of these.", armEpsilon, delta, noise),
			"The figures look at gradients without noise: they are known in simulation only, and no guarantee covers them.",
		},
	}
	chart := study.Chart{Title: "Figure 3.1: cosine of the noised and the true gradient by the clip", XTitle: "clip C", YTitle: "cosine", LogX: true, Note: "mean over draws and seeds, one standard deviation between seeds"}
	for i := range cells[0][0] {
		var at []look // one a seed
		for _, c := range cells[0] {
			at = append(at, c[i])
		}
		curve := lab.Curve(fmt.Sprintf("step %d", at[0].Steps), at[0].Clips, func(j int) lab.Spread {
			return lab.MeanAndDeviation(lab.Pick(at, func(c look) float64 { return c.Cosine[j] }))
		})
		chart.Series = append(chart.Series, curve)
		s.Rows = append(s.Rows, cosineRows(at, curve)...)
	}
	s.Rows = append(s.Rows, opposite(cells[0]))
	s.Charts = append(s.Charts, chart)
	return s, nil
}

// opposite is that some clip, at some point of training, turns the gradient round: of all of
// them the one with the lowest mean over seeds, whose whole interval must be below 0.
func opposite(seeds [][]look) study.Row {
	var lowest []float64
	where := ""
	for i, one := range seeds[0] {
		for j, clip := range one.Clips {
			values := lab.Pick(seeds, func(c []look) float64 { return c[i].Cosine[j] })
			if lowest == nil || lab.Interval(values).Middle < lab.Interval(lowest).Middle {
				lowest, where = values, fmt.Sprintf("step %d, C %.3g", one.Steps, clip)
			}
		}
	}
	return lab.AtMost(study.Row{
		Section: "Figure 3.1, all steps", Label: "lowest cosine", Metric: "cosine", Sentence: "figure 3.1: for some values the sanitized gradient may even point in the opposite direction, with negative cosine similarity",
		Note: "agrees: the whole 95 % interval over seeds below 0; lowest at " + where,
		Why:  "We believe that the mean over 20 draws of noise, which has no direction, cannot be negative but by chance: a single draw may be. Tested by the lowest of all clips and steps.",
	}, lowest, 0)
}

// prominent is by how much the best cosine must be above those at both ends of the thesis's
// range of C for an optimum that anyone would see.
const prominent = 1.25

// cosineRows judge one point of training. The best C is that of the mean curve; by how much it
// is better than the better end is told seed by seed.
func cosineRows(at []look, curve study.Series) []study.Row {
	section := fmt.Sprintf("Figure 3.1, step %d", at[0].Steps)
	claims := section + ": what the text claims"
	best := slices.MaxFunc(curve.Points, func(a, b study.Point) int { return cmp.Compare(a.Y, b.Y) })
	place := slices.Index(at[0].Clips, best.X)
	top := lab.Pick(at, func(c look) float64 { return c.Cosine[place] })
	ends := lab.Pick(at, func(c look) float64 { return max(c.Cosine[0], c.Cosine[len(c.Cosine)-1]) })
	rows := []study.Row{lab.Times(study.Row{
		Section: claims, Label: "best cosine over the better end's (C 0.01, C 100)", Metric: "ratio", Sentence: "section 3.1: at every iteration it is possible to determine a fairly prominent optimal value",
		Note: fmt.Sprintf("agrees: the whole 95 %% interval over seeds above %v, which is only inside the range; best at C %.3g", prominent, best.X),
		Why:  "We believe that the curve is nearly flat, since the lengths of gradients span many powers of ten: whatever C is, most of them are clipped, or most are not. Tested by their quantiles, in the rows below.",
	}, top, ends, prominent)}
	for _, end := range []struct {
		place          int
		sentence, name string
	}{{0, "figure 3.1: a higher clipping bias at small values", "C 0.01"}, {len(at[0].Clips) - 1, "figure 3.1: larger Gaussian noise at large values", "C 100"}} {
		rows = append(rows, lab.Effect(study.Row{
			Section: claims, Label: "best cosine less that at " + end.name, Metric: "difference of cosines", Sentence: end.sentence,
			Why: "We believe that this end of the range costs too little to be told by so few seeds. Tested by the interval alone.",
		}, lab.Pick(at, func(c look) float64 { return c.Cosine[place] - c.Cosine[end.place] }), 0))
	}
	rows = append(rows, lab.Measured(study.Row{Section: section, Label: "best cosine", Metric: "cosine", Verdict: study.NoNumber, Note: "the text lacks the figure"}, lab.Spread{Middle: best.Y, Low: best.Low, High: best.High}))
	for i, name := range []string{"10", "50", "90"} {
		rows = append(rows, lab.Measured(study.Row{Section: section, Label: name + " % of the gradients are shorter than", Metric: "norm", Verdict: study.NoNumber, Note: "the text lacks the figure"},
			lab.MeanAndDeviation(lab.Pick(at, func(c look) float64 { return c.Norms[i] }))))
	}
	return rows
}

// looks trains one model and looks at it on the way.
func (f figure31) looks(l *lab.Lab, run config.Run, noise float64) ([]look, error) {
	run.Run.Workers = l.Workers // one long run: its steps are what is spread over the cores
	s, err := sim.NewUntil(l.Context, run, l.Folder)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	m, err := model.Of(run, s.Federation().Shape())
	if err != nil {
		return nil, err
	}
	learner, err := m.Learner()
	if err != nil {
		return nil, err
	}
	streams := rng.NewFamily(run.Seed, "clipping-cosine")
	var out []look
	for made, more := 1, true; more; made++ {
		if more, err = s.Step(); err != nil {
			return nil, err
		}
		if !slices.Contains(f.blocks, made) {
			continue
		}
		one, err := f.look(learner, s.Returned(), &s.Federation().Train[0], noise, streams.Stream(made, 0))
		if err != nil {
			return nil, err
		}
		one.Steps = made * f.block
		out = append(out, one)
	}
	return out, nil
}

// look draws a batch and measures it.
func (f figure31) look(learner model.Learner, theta []float64, c *data.Client, noise float64, src *rng.Stream) (look, error) {
	order := make([]int, c.Len())
	for i := range order {
		order[i] = i
	}
	src.Shuffle(order)
	chosen := order[:min(batch, len(order))]
	one := look{Clips: clips(9)}
	truth, clipped := make([]float64, len(theta)), make([]float64, len(theta))
	norms := make([]float64, len(chosen))
	for i, row := range chosen {
		if err := learner.Gradient(clipped, theta, c, []int{row}, &model.Step{}); err != nil {
			return one, err
		}
		norms[i] = math.Sqrt(dot(clipped, clipped))
	}
	slices.Sort(norms)
	for i, q := range []float64{0.1, 0.5, 0.9} {
		one.Norms[i] = norms[int(q*float64(len(norms)-1))]
	}
	if err := learner.Gradient(truth, theta, c, chosen, &model.Step{}); err != nil {
		return one, err
	}
	for _, clip := range one.Clips {
		if err := learner.Gradient(clipped, theta, c, chosen, &model.Step{Clip: clip, Divisor: len(chosen)}); err != nil {
			return one, err
		}
		draws := make([]float64, f.draws)
		for i := range draws {
			draws[i] = noisedCosine(clipped, truth, noise*clip/float64(len(chosen)), src)
		}
		s := lab.MeanAndDeviation(draws)
		one.Cosine, one.Spread = append(one.Cosine, s.Middle), append(one.Spread, s.High-s.Middle)
	}
	return one, nil
}

// noisedCosine is the cosine of a vector with noise of a standard deviation and of the true one.
func noisedCosine(v, truth []float64, deviation float64, src *rng.Stream) float64 {
	var along, square float64
	for i, x := range v {
		x += deviation * src.Normal()
		along, square = along+x*truth[i], square+x*x
	}
	if length := math.Sqrt(square * dot(truth, truth)); length > 0 {
		return along / length
	}
	return 0
}

func dot(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
