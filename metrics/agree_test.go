package metrics

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// TestFiguresAgreeWithJudge: what a learner says of a client follows from its outputs,
// whatever it was trained by.
func TestFiguresAgreeWithJudge(t *testing.T) {
	three := data.Client{Rows: data.Rows{Features: 2}}
	for i := range 60 {
		three.X, three.Y = append(three.X, math.Sin(float64(i)), math.Cos(3*float64(i))), append(three.Y, float64(i%3))
	}
	two := data.Client{Rows: data.Rows{Features: 2, X: three.X}}
	for _, y := range three.Y {
		two.Y = append(two.Y, math.Min(y, 1))
	}
	weights := model.Emphasis{Weights: []float64{1, 5, 2}, Alpha: 0.7, Gamma: 2}
	for name, c := range map[string]struct {
		m       model.Model
		c       *data.Client
		classes int
		loss    model.Loss
	}{
		"logistic": {model.Linear{Features: 2, Intercept: true, Loss: model.CrossEntropy, Classes: 2, Emphasis: weights}, &two, 2, model.CrossEntropy},
		"focal":    {model.Linear{Features: 2, Loss: model.Focal, Classes: 2, Emphasis: weights}, &two, 2, model.Focal},
		"softmax":  {model.Softmax{Linear: model.Linear{Features: 2, Intercept: true, Loss: model.CrossEntropy, Classes: 3, Emphasis: weights}}, &three, 3, model.CrossEntropy},
		"squares":  {model.Linear{Features: 2, Loss: model.SquaredError}, &two, 0, model.SquaredError},
	} {
		l, err := c.m.Learner()
		if err != nil {
			t.Fatal(err)
		}
		theta := make([]float64, c.m.Parameters())
		for i := range theta {
			theta[i] = math.Sin(5 * float64(i))
		}
		loss, wrong, err := l.Judge(theta, c.c)
		if err != nil {
			t.Fatal(err)
		}
		outputs, each, err := l.Outputs(nil, theta, c.c)
		if err != nil {
			t.Fatal(err)
		}
		f := overall(t, Task{Classes: c.classes, Loss: c.loss}, Answers{outputs, each, Targets(nil, c.c)})
		if c.classes == 0 {
			if !near(value(f.RMSE), math.Sqrt(loss)) {
				t.Errorf("%s: RMSE %v for a loss of %v", name, value(f.RMSE), loss)
			}
		} else if !near(value(f.LogLoss), loss) || !near(value(f.Accuracy), 1-float64(wrong)/60) {
			t.Errorf("%s: log loss %v and accuracy %v; judged %v and %d wrong", name, value(f.LogLoss), value(f.Accuracy), loss, wrong)
		}
	}
	pictures := data.Client{Pictures: data.Pictures{Images: &data.Images{Labels: []int{4, 0, 7}}, Index: []int{2, 0}}}
	if got := Targets([]float64{9}, &pictures); !slices.Equal(got, []float64{9, 7, 4}) {
		t.Errorf("the classes of pictures are %v", got)
	}
	pictures.Images.Targets = []float64{0.5, 1, 2}
	if got := Targets(nil, &pictures); !slices.Equal(got, []float64{2, 0.5}) {
		t.Errorf("the values of pictures are %v", got)
	}
}
