package kernel

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// Benchmarks report the best round, which others on the machine can only make
// longer, and its share of the best fused multiply-add peak seen so far.
// (Processor time would be the better clock, but virtual machines were seen to
// count too little of it.)

// measure times f and reports GFLOP/s.
func measure[F Float](b *testing.B, flops float64, f func()) {
	b.Helper()
	peak := peakFlops[F]()
	best := bestRound(b, f)
	b.ReportMetric(flops/best/1e9, "GFLOP/s")
	if peak > 0 {
		b.ReportMetric(100*flops/best/peak, "%peak")
	}
}

// measureValues times f and reports nanoseconds a value.
func measureValues(b *testing.B, n int, f func()) {
	b.Helper()
	b.ReportMetric(bestRound(b, f)*1e9/float64(n), "ns/value")
}

// bestRound is the shortest time of f in seconds, from rounds that are long
// against the clock's steps.
func bestRound(b *testing.B, f func()) float64 {
	f()
	start := time.Now()
	f()
	repeat := 1 + int(30*time.Microsecond/max(time.Since(start), time.Nanosecond))
	best := time.Hour
	for b.Loop() {
		start := time.Now()
		for range repeat {
			f()
		}
		best = min(best, time.Since(start))
	}
	return best.Seconds() / float64(repeat)
}

func numbers[F Float](n int) []F {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	x := make([]F, n)
	for i := range x {
		x[i] = F(r.NormFloat64())
	}
	return x
}

func BenchmarkPeak(b *testing.B) {
	b.Run("float32", func(b *testing.B) {
		best := 0.0
		for b.Loop() {
			best = max(best, peakFlops[float32]())
		}
		b.ReportMetric(best/1e9, "GFLOP/s")
	})
	b.Run("float64", func(b *testing.B) {
		best := 0.0
		for b.Loop() {
			best = max(best, peakFlops[float64]())
		}
		b.ReportMetric(best/1e9, "GFLOP/s")
	})
}

func BenchmarkGemm(b *testing.B) {
	b.Run("float32", benchmarkGemm[float32])
	b.Run("float64", benchmarkGemm[float64])
}

func benchmarkGemm[F Float](b *testing.B) {
	for _, s := range []struct {
		name    string
		m, k, n int
		layout  string // which factors are transposed
	}{
		{"square", 512, 512, 512, "nn"},
		{"mnist-conv2-as-product", 529, 256, 32, "nn"},
		{"mlp-784-forward", 10, 784, 128, "nn"},
		{"mnist-fc-batch-512-forward", 512, 16928, 32, "nn"},
		{"mnist-fc-forward", 64, 16928, 32, "nn"},
		{"mnist-fc-weights", 16928, 64, 32, "tn"},
		{"mnist-fc-inputs", 64, 32, 16928, "nt"},
		{"femnist-fc-forward", 10, 9216, 128, "nn"},
		{"femnist-fc-weights", 9216, 10, 128, "tn"},
		{"femnist-fc-inputs", 10, 128, 9216, "nt"},
		{"agnews-fc1-forward", 512, 750, 128, "nn"},
		{"agnews-fc1-weights", 750, 512, 128, "tn"},
		{"agnews-fc2-forward", 512, 128, 128, "nn"},
		{"agnews-fc2-inputs", 512, 128, 128, "nt"},
		{"agnews-fc3-forward", 512, 128, 4, "nn"},
		{"column", 512, 128, 1, "nn"},
	} {
		b.Run(fmt.Sprintf("%s/%dx%dx%d%s", s.name, s.m, s.k, s.n, s.layout), func(b *testing.B) {
			x, y, c := Dense(numbers[F](s.m*s.k), s.m, s.k), Dense(numbers[F](s.k*s.n), s.k, s.n), Dense(make([]F, s.m*s.n), s.m, s.n)
			if s.layout[0] == 't' {
				x = Dense(x.Data, s.k, s.m).T()
			}
			if s.layout[1] == 't' {
				y = Dense(y.Data, s.n, s.k).T()
			}
			var ws Workspace[F]
			measure[F](b, 2*float64(s.m*s.k*s.n), func() { Gemm(1, x, y, 0, c, &ws) })
		})
	}
}

// BenchmarkGonum is a yardstick: gonum's products of the same shapes. Run it
// with -cpu 1, for gonum spreads large products over the processors.
func BenchmarkGonum(b *testing.B) {
	for _, s := range [][3]int{{512, 512, 512}, {529, 256, 32}, {10, 784, 128}, {512, 16928, 32}} {
		m, k, n := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("%dx%dx%d", m, k, n), func(b *testing.B) {
			x, y, c := numbers[float32](m*k), numbers[float32](k*n), make([]float32, m*n)
			measure[float32](b, 2*float64(m*k*n), func() {
				gonum.Implementation{}.Sgemm(blas.NoTrans, blas.NoTrans, m, n, k, 1, x, k, y, n, 0, c, n)
			})
		})
	}
}

func BenchmarkTinyGemm(b *testing.B) {
	for _, s := range [][3]int{{1, 2, 1}, {10, 2, 1}, {3, 3, 2}, {2, 10, 2}, {4, 4, 4}, {5, 5, 4}, {10, 10, 1}, {4, 8, 4}, {10, 11, 2}, {8, 8, 8}} {
		b.Run(fmt.Sprintf("%dx%dx%d", s[0], s[1], s[2]), func(b *testing.B) {
			m, k, n := s[0], s[1], s[2]
			x, y, c := Dense(numbers[float64](m*k), m, k), Dense(numbers[float64](k*n), k, n), Dense(make([]float64, m*n), m, n)
			var ws Workspace[float64]
			measureValues(b, 1, func() { Gemm(1, x, y, 0, c, &ws) })
		})
	}
}

func BenchmarkConv(b *testing.B) {
	b.Run("float32", benchmarkConv[float32])
	b.Run("float64", benchmarkConv[float64])
}

func benchmarkConv[F Float](b *testing.B) {
	square := func(size, in, out, kernel, pad int) Conv {
		return Conv{size, size, in, out, kernel, kernel, 1, 1, pad, pad, 0, 0}
	}
	for _, s := range []struct {
		name string
		g    Conv
	}{
		{"mnist-1", square(28, 1, 16, 8, 3)},
		{"mnist-2", square(26, 16, 32, 4, 0)},
		{"autoencoder-1", square(28, 1, 8, 3, 0)},
		{"autoencoder-2", square(26, 8, 16, 3, 0)},
		{"autoencoder-3", square(24, 16, 32, 3, 0)},
		{"autoencoder-4", square(22, 32, 64, 3, 0)},
		{"femnist-1", square(28, 1, 32, 3, 0)},
		{"femnist-2", square(26, 32, 64, 3, 0)},
	} {
		g := s.g
		x, filter, dy := numbers[F](g.InLen()), numbers[F](g.FilterLen()), numbers[F](g.OutLen())
		y, dx, dw, rotated := make([]F, g.OutLen()), make([]F, g.InLen()), make([]F, g.FilterLen()), make([]F, g.RotatedLen())
		RotateFilter(g, rotated, filter)
		var ws Workspace[F]
		// The work of the definition, products with the padding included.
		flops := 2 * float64(g.OutH()*g.OutW()*g.FilterLen())
		b.Run(s.name+"/forward", func(b *testing.B) {
			measure[F](b, flops, func() { ConvForward(g, x, filter, y, &ws) })
		})
		b.Run(s.name+"/weights", func(b *testing.B) {
			measure[F](b, flops, func() { ConvWeightGrad(g, x, dy, dw, false, &ws) })
		})
		b.Run(s.name+"/inputs", func(b *testing.B) {
			measure[F](b, flops, func() { ConvInputGrad(g, dy, rotated, dx, &ws) })
		})
	}
}

func BenchmarkPool(b *testing.B) {
	for _, s := range []struct {
		name string
		g    Pool
	}{
		{"mnist-2x2-stride-1", Pool{27, 27, 16, 2, 2, 1, 1, 0, 0}},
		{"femnist-2x2-stride-2", Pool{24, 24, 64, 2, 2, 2, 2, 0, 0}},
	} {
		x, dx := numbers[float32](s.g.InLen()), make([]float32, s.g.InLen())
		y, dy := make([]float32, s.g.OutLen()), numbers[float32](s.g.OutLen())
		var ws Workspace[float32]
		b.Run(s.name+"/forward", func(b *testing.B) { measureValues(b, len(x), func() { MaxPool(s.g, x, y) }) })
		b.Run(s.name+"/gradient", func(b *testing.B) {
			measureValues(b, len(x), func() { MaxPoolGrad(s.g, x, y, dy, dx, &ws) })
		})
	}
}

func BenchmarkVector(b *testing.B) {
	b.Run("float32", benchmarkVector[float32])
	b.Run("float64", benchmarkVector[float64])
}

func benchmarkVector[F Float](b *testing.B) {
	const n = 1 << 14
	x, y, dst := numbers[F](n), numbers[F](n), make([]F, n)
	for _, s := range []struct {
		name string
		run  func()
	}{
		{"Axpy", func() { Axpy(1e-9, x, y) }},
		{"Relu", func() { Relu(dst, x) }},
		{"ReluGrad", func() { ReluGrad(dst, x, y) }},
		{"Dot", func() { Dot(x, y) }},
		{"SquaredNorm", func() { SquaredNorm(x) }},
		{"AddToRows32", func() { AddToRows(dst, x[:32]) }},
		{"SumRows32", func() { SumRows(dst[:32], x) }},
		{"Transpose", func() { Transpose(dst, x, 128, 128) }},
		{"Tanh", func() { Tanh(dst, x) }},
		{"Exp", func() { Exp(dst, x) }},
		{"Sigmoid", func() { Sigmoid(dst, x) }},
	} {
		b.Run(s.name, func(b *testing.B) { measureValues(b, n, s.run) })
	}
	big := numbers[F](1_206_590)
	b.Run("SquaredNorm1206590", func(b *testing.B) { measureValues(b, len(big), func() { SquaredNorm(big) }) })
}

// BenchmarkNormals makes the noise of the FEMNIST network, 1,206,590 values:
// the transform alone, and with its random words from AES-128 in counter mode.
func BenchmarkNormals(b *testing.B) {
	const n = 1_206_590
	block, err := aes.NewCipher(make([]byte, 16))
	if err != nil {
		b.Fatal(err)
	}
	stream := cipher.NewCTR(block, make([]byte, 16))
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			best := bestRound(b, f)
			b.ReportMetric(best*1e3, "ms")
			b.ReportMetric(best*1e9/n, "ns/value")
		})
	}
	const part = 1 << 13 // words stay in the cache
	words32 := make([]byte, 4*part)
	single := make([]float32, n)
	fill32 := func(words func()) func() {
		return func() {
			for lo := 0; lo < n; lo += part {
				words()
				Normals32(single[lo:min(lo+part, n)], 1, words32)
			}
		}
	}
	stream.XORKeyStream(words32, words32)
	run("float32", fill32(func() {}))
	run("float32-aes", fill32(func() { stream.XORKeyStream(words32, words32) }))
}
