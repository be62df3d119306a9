package audit

import (
	"context"
	"errors"
	"math"
	"testing"
)

// rosenbrock is the usual narrow valley, in n dimensions; its minimum is 0 at 1.
func rosenbrock(x, g []float64) (float64, error) {
	clear(g)
	var sum float64
	for i := range len(x) - 1 {
		a, b := x[i+1]-x[i]*x[i], 1-x[i]
		sum += 100*a*a + b*b
		g[i] += -400*x[i]*a - 2*b
		g[i+1] += 200 * a
	}
	return sum, nil
}

func TestMinimise(t *testing.T) {
	start := make([]float64, 20)
	for i := range start {
		start[i] = -1.2 + 2.2*float64(i%2)
	}
	x, value, err := minimise(context.Background(), rosenbrock, start, 600, 1e-20)
	if err != nil {
		t.Fatal(err)
	}
	if !(value < 1e-16) {
		t.Errorf("the valley's end has the value %v", value)
	}
	for i, v := range x {
		if math.Abs(v-1) > 1e-6 {
			t.Errorf("coordinate %d is %v", i, v)
		}
	}
	if start[0] != -1.2 {
		t.Error("the start was changed")
	}
	// With few evaluations it must not have arrived: the test could fail.
	if _, value, _ = minimise(context.Background(), rosenbrock, start, 10, 0); value < 1e-3 {
		t.Errorf("10 evaluations reach %v", value)
	}
}

func TestMinimiseNeverRises(t *testing.T) {
	used := 0
	_, value, err := minimise(context.Background(), func(x, g []float64) (float64, error) {
		used++
		if used > 3 { // what leaves the finite numbers is stepped back from
			return math.NaN(), nil
		}
		return rosenbrock(x, g)
	}, []float64{-1.2, 1}, 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !(value <= 24.2) {
		t.Errorf("the value rose to %v", value)
	}
}

func TestMinimiseStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := minimise(ctx, rosenbrock, []float64{-1.2, 1}, 100, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	fault := errors.New("fault")
	if _, _, err := minimise(context.Background(), func([]float64, []float64) (float64, error) { return 0, fault }, []float64{1}, 9, 0); !errors.Is(err, fault) {
		t.Errorf("%v", err)
	}
	// At a minimum the gradient is 0: there is no direction to go.
	if _, value, err := minimise(context.Background(), rosenbrock, []float64{1, 1}, 9, -1); err != nil || value != 0 {
		t.Errorf("%v, %v", value, err)
	}
}
