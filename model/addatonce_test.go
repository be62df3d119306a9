package model

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
)

// TestAddingAtOnceChangesNoBit: one worker adds chunks of linear layers to what lanes before
// have come to, where each is a lane of its own; two give every lane its own memory.
// Layers are large, small, and of one input or output, examples within the clip and beyond,
// of some chunks nearly all.
func TestAddingAtOnceChangesNoBit(t *testing.T) {
	t.Run("float32", testAddingAtOnce[float32])
	t.Run("float64", testAddingAtOnce[float64])
}

func testAddingAtOnce[F Float](t *testing.T) {
	layers := []Layer{{Kind: "linear", Units: 40}, {Kind: "leaky-relu"}, {Kind: "linear", Units: 1}, {Kind: "linear", Units: 9}, {Kind: "linear", Units: 4, NoBias: true}}
	for _, clipping := range []mech.ClipRule{{}, {Signal: mech.SignalDirections, GradientNoise: 1.01, Rate: 0.1, StepRate: 0.1}} {
		for _, rows := range []int{0, 20, 300, 700, lanes*maxChunk + 1} {
			for _, share := range []float64{0.03, 0.5, 0.97} {
				var want []F
				var state mech.ClipState
				for _, workers := range []int{1, 2} {
					e, theta := newEngine(t, Shape{1, 1, 30}, layers, Objective[F](crossEntropy[F]{}), workers)
					ex, order := examples(e, rows)
					if once := e.addsAtOnce(rows); once != (workers == 1 && rows <= lanes*maxChunk) {
						t.Fatalf("%d rows, %d workers: added at once %v", rows, workers, once)
					}
					rule := mech.StepRule{Clip: quantile(t, e, theta, ex, order, share), Noise: 1e-3, Sampling: event.Shuffle, Batch: 512, Examples: 512, Rate: 1, Clipping: clipping}
					steps := sampledSteps(t, rule, stream("batches"), mech.Randomness{Keyed: stream("noise")})
					var sum *mech.LaneSum[F]
					released := make([]F, len(theta))
					for range 2 { // the memory of the first serves the second
						var err error
						if sum, err = mech.PrepareLanes(steps, sum, len(theta), lanes); err != nil {
							t.Fatal(err)
						}
						if _, err := e.ClippedSum(sum, theta, ex, order); err != nil {
							t.Fatal(err)
						}
						if err := mech.SimulateStep(begin(t, Step{Paid: steps}).Paid, released, sum); err != nil {
							t.Fatal(err)
						}
					}
					var got mech.ClipState
					steps.Save(&got)
					if workers == 1 {
						want, state = released, got
					} else if !slices.Equal(released, want) || !slices.Equal(got.Direction, state.Direction) || got.Clip != state.Clip {
						t.Errorf("%d rows, %v of them within the clip, signal %d: other bits than with lanes", rows, share, clipping.Signal)
					}
				}
			}
		}
	}
}

// quantile is the norm that a share of the examples' gradients are within.
func quantile[F Float](t *testing.T, e *Engine[F], theta []F, ex Examples[F], order []int, share float64) float64 {
	t.Helper()
	if len(order) == 0 {
		return 1
	}
	g, norms := make([]F, len(theta)), make([]float64, 0, 100)
	for _, i := range order[:min(len(order), 100)] {
		if _, err := e.Gradient(g, theta, ex, []int{i}); err != nil {
			t.Fatal(err)
		}
		var squares float64
		for _, v := range g {
			squares += float64(v) * float64(v)
		}
		norms = append(norms, squares)
	}
	slices.Sort(norms)
	return math.Sqrt(norms[int(share*float64(len(norms)))])
}
