package fairness

import (
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fair"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/repro/lab"
)

// mostJudged bounds how many pictures of a writer are used to choose, and to judge.
const mostJudged = 60

// halves takes every second picture of a writer to choose by, the others to judge on:
// pictures come sorted, so the first half would be other classes than the second.
func halves(c *data.Client) (choose, judge *data.Client) {
	choose, judge = &data.Client{Group: c.Group}, &data.Client{Group: c.Group}
	choose.Images, judge.Images = c.Images, c.Images
	stride := max(1, c.Len()/(2*mostJudged))
	for i := 0; i+1 < c.Len() && len(judge.Index) < mostJudged; i += 2 * stride {
		choose.Index = append(choose.Index, c.Index[i])
		judge.Index = append(judge.Index, c.Index[min(i+stride, c.Len()-1)])
	}
	return choose, judge
}

// parityLabel is the rule of paper 003, section 5.2.2: an even class is 1 for those
// who write upright, an odd class for those whose pictures are turned.
func parityLabel(group, class int) int {
	if group == 0 {
		return 1 - class%2
	}
	return class % 2
}

func pictureGroup(group int) string {
	if group == 0 {
		return "upright"
	}
	return "rotated"
}

// learnerOf is the run's network, and the same with memory of its own.
func learnerOf(run config.Run, f *data.Federation) (model.Model, model.Learner, error) {
	m, err := model.Of(run, f.Shape())
	if err != nil {
		return nil, nil, err
	}
	l, err := m.Learner()
	return m, l, err
}

// classify gives every picture of the client its class, and 1 where that is wrong.
func classify(l model.Learner, theta []float64, c *data.Client) (classes, wrong []int, err error) {
	outputs, each, err := l.Outputs(nil, theta, c)
	if err != nil {
		return nil, nil, err
	}
	classes, wrong = make([]int, c.Len()), make([]int, c.Len())
	for i := range classes {
		own := outputs[i*each : (i+1)*each]
		if classes[i] = slices.Index(own, slices.Max(own)); classes[i] != c.Images.Labels[c.Index[i]] {
			wrong[i] = 1
		}
	}
	return classes, wrong, nil
}

// judgePictures trains one run and measures its fairness on the held-out writers.
func judgePictures(l *lab.Lab, run config.Run) (out cell, err error) {
	s, err := l.Finish(run)
	if err != nil {
		return out, err
	}
	defer s.Close()
	m, learner, err := learnerOf(run, s.Federation())
	if err != nil {
		return out, err
	}
	n := m.Parameters()
	var rows fair.Rows
	hypotheses := s.Returned()
	for u := range s.Federation().Validation {
		choose, judge := halves(&s.Federation().Validation[u])
		_, best, err := model.Best(learner, n, hypotheses, choose)
		if err != nil {
			return out, err
		}
		classes, wrong, err := classify(learner, hypotheses[best*n:(best+1)*n], judge)
		if err != nil {
			return out, err
		}
		for i, class := range classes {
			rows.Truth = append(rows.Truth, parityLabel(judge.Group, judge.Images.Labels[judge.Index[i]]))
			rows.Predicted = append(rows.Predicted, parityLabel(judge.Group, class))
			rows.Group, rows.Cluster = append(rows.Group, pictureGroup(judge.Group)), append(rows.Cluster, u)
		}
		out.Wrong = append(out.Wrong, wrong...)
	}
	out.Accuracy = lab.Share(out.Wrong, func(wrong int) bool { return wrong == 0 })
	if err := out.measure(rows); err != nil {
		return out, err
	}
	rows.Predicted = rows.Truth
	perfect, err := fair.Measure(rows)
	if err != nil {
		return out, err
	}
	out.Perfect = perfect.Metrics.DemographicParityDifference.Value
	return out, nil
}

// aloneCell is what held-out writers misread with models of their own.
type aloneCell struct {
	Group  []int // by writer
	Judged []int // pictures, by writer
	Wrong  []int // picture by picture
}

// trainAlone trains every held-out writer's own network on the half of its pictures
// that it would choose a model by, and judges on the other half.
func trainAlone(l *lab.Lab, run config.Run) (out aloneCell, err error) {
	f, err := l.Folder.Load(run.Data, run.Seed)
	if err != nil {
		return out, err
	}
	m, learner, err := learnerOf(run, f)
	if err != nil {
		return out, err
	}
	epochs := 10
	if l.Scale == lab.Smoke {
		epochs = 1
	}
	alone := &model.Pass{StepSize: run.Algorithm.Local.Step, Epochs: epochs, Batch: 10, Single: true}
	family := rng.NewFamily(run.Seed, "writers alone")
	theta := make([]float64, m.Parameters())
	for u := range f.Validation {
		if err := l.Context.Err(); err != nil {
			return out, err
		}
		choose, judge := halves(&f.Validation[u])
		stream := family.Stream(0, u)
		m.Initialise(theta, stream)
		alone.Shuffle = stream
		if err := learner.Train(theta, choose, alone); err != nil {
			return out, err
		}
		_, wrong, err := classify(learner, theta, judge)
		if err != nil {
			return out, err
		}
		out.Wrong = append(out.Wrong, wrong...)
		out.Group, out.Judged = append(out.Group, judge.Group), append(out.Judged, judge.Len())
	}
	return out, nil
}
