package audit

import (
	"context"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/model"
)

// The prior of pictures of handwriting: about how much an edge costs, how hard the
// range from 0 to 1 is, and from where on a difference of neighbours counts as an
// edge. Chosen on MNIST, for all noise levels alike.
const (
	edgeCost   = 1.5
	rangeCost  = 200
	edgeSize   = 0.02
	leastNoise = 1e-4 // features are never trusted further

	trustRounds = 3
)

// unroll finds the picture whose features, with the 1 of the bias behind them,
// come nearest to the line that was read off the gradient: the most probable one
// if its entries have independent normal errors of the size that the gradient
// shows, under the prior. The length along the line is left free: one bias entry
// tells it badly under noise. It is found in rounds that trust the line more and
// more, because the last one's valley is too narrow to be found from afar.
func unroll(ctx context.Context, prefix Network, theta []float64, input denseInput, evaluations int) ([]float64, int, error) {
	if evaluations < trustRounds {
		return nil, 0, fmt.Errorf("closed form: %d evaluations; allowed: %d or more", evaluations, trustRounds)
	}
	engine, net, err := squaredEngine(prefix)
	if err != nil {
		return nil, 0, err
	}
	n := net.Output().Len()
	if n != len(input.input) {
		return nil, 0, fmt.Errorf("closed form: %d features for a network that makes %d", len(input.input), n)
	}
	f := &featureFit{engine: engine, theta: theta[:net.Parameters()], line: input.line, shape: prefix.Input, features: make([]float64, n), target: make([]float64, n)}
	x := make([]float64, prefix.Input.Len())
	for i := range x {
		x[i] = 0.5
	}
	along, err := f.along(x)
	if err != nil {
		return nil, 0, err
	}
	if !(along > 0) {
		along = 1 // the line points away from all that the network makes: noise
	}
	best := max(input.blur, leastNoise/along)
	for round := range trustRounds {
		sd := best * math.Pow(10, float64(trustRounds-1-round))
		f.weight = 1 / (2 * sd * sd)
		if x, _, err = minimise(ctx, f.value, x, evaluations/trustRounds, 0); err != nil {
			return nil, 0, err
		}
	}
	return x, f.used, nil
}

// featureFit is the cost of a picture: the squared sine of the angle between its
// features and the line, over twice the variance of the line's entries, and the
// prior.
type featureFit struct {
	engine           *model.Engine[float64]
	theta, line      []float64
	shape            model.Shape
	weight           float64
	features, target []float64
	used             int
}

// along is how far the picture's features go along the line.
func (f *featureFit) along(x []float64) (float64, error) {
	if err := f.engine.Outputs(f.features, f.theta, model.Examples[float64]{X: x}, one); err != nil {
		return 0, err
	}
	along := dot(f.features, f.line[:len(f.features)])
	if len(f.line) > len(f.features) { // the bias: its input is 1
		along += f.line[len(f.features)]
	}
	return along, nil
}

// value is the cost and its gradient. With b = [features; 1], N = |b|^2 and s the
// length along the line, the squared sine 1 - s^2/N has the derivative
// 2 s/N (s b/N - line) with respect to b.
func (f *featureFit) value(x, gradient []float64) (float64, error) {
	f.used++
	along, err := f.along(x)
	if err != nil {
		return 0, err
	}
	n := len(f.features)
	total := squared(f.features)
	if len(f.line) > n {
		total++
	}
	for i, v := range f.features {
		d := f.weight * 2 * along / total * (along*v/total - f.line[i])
		f.target[i] = v - float64(n)/2*d // for which the engine's squared error has the output gradient d
	}
	if _, err := f.engine.InputGradient(gradient, f.theta, model.Examples[float64]{X: x, Targets: f.target}, 0); err != nil {
		return 0, err
	}
	return f.weight*max(0, 1-along*along/total) + prior(gradient, x, f.shape), nil
}

// prior adds the gradient of the prior's cost and returns the cost.
func prior(gradient, x []float64, s model.Shape) float64 {
	var cost float64
	for i, v := range x {
		if out := v - min(max(v, 0), 1); out != 0 {
			cost += rangeCost * out * out
			gradient[i] += 2 * rangeCost * out
		}
	}
	line := s.Width * s.Channels
	edge := func(i, j int) {
		d := x[i] - x[j]
		r := math.Sqrt(d*d + edgeSize*edgeSize)
		cost += edgeCost * (r - edgeSize)
		gradient[i] += edgeCost * d / r
		gradient[j] -= edgeCost * d / r
	}
	for i := range x {
		if i%line >= s.Channels {
			edge(i, i-s.Channels)
		}
		if i >= line {
			edge(i, i-line)
		}
	}
	return cost
}
