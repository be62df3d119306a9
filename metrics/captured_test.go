package metrics

import (
	"math"
	"testing"
)

// TestCaptured: the share of squared lengths over all examples, of one client and of
// several, and the difference of two projections of the same examples.
func TestCaptured(t *testing.T) {
	task := Task{Projection: true}
	if task.Main() != "captured" || task.LessIsBetter() {
		t.Errorf("the main figure is %s, less is better %v", task.Main(), task.LessIsBetter())
	}
	a := Answers{Outputs: []float64{1, 2, 3}, Each: 1, Targets: []float64{2, 2, 4}}
	b := Answers{Outputs: []float64{0, 1, 2}, Each: 1, Targets: []float64{2, 2, 4}}
	all, err := Overall(task, []Answers{a, b})
	if err != nil || math.Abs(float64(all.Captured.Value)-9./16) > 1e-12 || all.RMSE != nil || all.Captured.Low == nil || *all.Captured.Low >= all.Captured.Value {
		t.Errorf("over both it is %+v, %v", all.Captured, err)
	}
	own, err := OfClient(task, a)
	if err != nil || math.Abs(float64(own.Captured.Value)-0.75) > 1e-12 || own.Main(task) != own.Captured {
		t.Errorf("of one it is %+v, %v", own.Captured, err)
	}
	d, err := Difference(task, a, b)
	if err != nil || math.Abs(float64(d.Value)-3./8) > 1e-12 || d.Low == nil || *d.Low >= d.Value {
		t.Errorf("a captures %+v more than b, %v; want 3/8", d, err)
	}
}
