package model

import (
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
)

// transformerFlops is what one trained example takes in matrix products, by the usual
// count: three passes of two operations a parameter and place, and the products between
// places.
func transformerFlops(m config.Model, vocabulary, places int) float64 {
	d, l, v, t := float64(m.Width), float64(m.Blocks), float64(vocabulary), float64(places)
	return t * 3 * (2*(12*l*d*d+v*d) + 4*t*d*l)
}

// BenchmarkTransformerStep is a step of the quick membership study's language model, on
// 16 rows of 64 words, on one core: plain, and with examples clipped and noised.
// testdata/transformer_torch.py times the same step in torch.
func BenchmarkTransformerStep(b *testing.B) {
	const rows, places, vocabulary = 16, 64, 2048
	shape := data.Shape{Features: places, Vocabulary: vocabulary}
	run := config.Run{Model: config.Model{Kind: "transformer", Blocks: 2, Width: 128, Heads: 4}}
	run.Algorithm.Local.Loss = "next-word"
	m, err := Of(run, shape)
	if err != nil {
		b.Fatal(err)
	}
	l, s := learnerOf(b, m), stream("bench")
	c := &data.Client{}
	for range rows * places {
		c.X = append(c.X, float64(s.Below(vocabulary)))
	}
	c.Y = make([]float64, rows)
	theta, grad := make([]float64, m.Parameters()), make([]float64, m.Parameters())
	m.Initialise(theta, s)
	avx2, widest := peakFlops()
	order := identity(new([]int), rows)
	for _, v := range []struct {
		name string
		step Step
	}{
		{"plain", Step{}},
		{"private", Step{Paid: paidSteps(b, 1, 1, mech.Randomness{Keyed: s}), Divisor: rows}},
		{"exact", Step{Paid: paidSteps(b, 1, 1, mech.Randomness{Exact: mech.SystemEntropy()}), Divisor: rows}},
	} {
		b.Run(v.name, func(b *testing.B) {
			began := cpu()
			for b.Loop() {
				if err := l.Gradient(grad, theta, c, order, begin(b, v.step)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpu()-began).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
			flops := rows * transformerFlops(run.Model, vocabulary, places) / (b.Elapsed().Seconds() / float64(b.N))
			b.ReportMetric(flops/1e9, "Gflop/s")
			b.ReportMetric(100*flops/avx2, "%avx2")
			b.ReportMetric(100*flops/widest, "%widest")
		})
	}
}
