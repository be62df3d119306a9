//go:build linux

package cuda_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/model"
)

// TestRecordedSteps: kernels that are started at once, as they are from the second step of a
// size on, give the bits of kernels that are started one by one: whatever sizes, sets of
// pictures and kinds of steps come between, and however many.
func TestRecordedSteps(t *testing.T) {
	cudatest.Use(t)
	s := data.Shape{Height: 4, Width: 4, Classes: 3}
	m, theta := build(t, s, "cross-entropy", layers{{Kind: "conv", Channels: 4, Kernel: 2}, {Kind: "tanh"}, {Kind: "linear", Units: 3}})
	src := rand.New(rand.NewPCG(1, 1))
	clients := []*data.Client{client(s, 50, src), client(s, 50, src)}
	type asked struct {
		client, rows int
		clip         float64
	}
	var all []asked
	for _, rows := range []int{5, 19} { // the last one is two parts, of which the second adds to the first
		for client := range clients {
			for _, clip := range []float64{0, 0.5} {
				all = append(all, asked{client, rows, clip})
			}
		}
	}
	do := func(l model.Learner, a asked) []float64 {
		rows := make([]int, a.rows)
		for i := range rows {
			rows[i] = (3*i + a.rows) % 50
		}
		g := make([]float64, len(theta))
		if err := l.Gradient(g, theta, clients[a.client], rows, &model.Step{Clip: a.clip, Divisor: 10}); err != nil {
			t.Fatal(err)
		}
		return g
	}
	alone := map[asked][]float64{}
	for _, a := range all {
		alone[a] = do(learner(t, model.On(m, open(t, m, 16))), a)
	}
	l := learner(t, model.On(m, open(t, m, 16)))
	for turn := range 3 {
		for _, a := range all {
			if got := do(l, a); !slices.Equal(got, alone[a]) {
				t.Errorf("turn %d, %d rows of client %d, clip %v: other bits than alone", turn, a.rows, a.client, a.clip)
			}
		}
	}
}

// TestManyRecordings: a network forgets what it recorded before it keeps too much.
func TestManyRecordings(t *testing.T) {
	cudatest.Use(t)
	s := data.Shape{Height: 2, Width: 2, Classes: 2}
	m, theta := build(t, s, "cross-entropy", layers{{Kind: "linear", Units: 2}})
	c := client(s, 400, rand.New(rand.NewPCG(1, 1)))
	l := learner(t, model.On(m, open(t, m, 400)))
	first := map[int][]float64{}
	for turn := range 3 {
		for n := 1; n <= 170 && (turn < 2 || n < 10); n++ { // more than are kept
			g := make([]float64, len(theta))
			if err := l.Gradient(g, theta, c, slices.Repeat([]int{n}, n), &model.Step{Clip: 0.5, Divisor: 10}); err != nil {
				t.Fatal(err)
			}
			if turn == 0 {
				first[n] = g
			} else if !slices.Equal(g, first[n]) {
				t.Fatalf("turn %d, %d rows: other bits", turn, n)
			}
		}
	}
}
