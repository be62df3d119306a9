//go:build amd64 && !purego

package kernel

import "time"

// withTwin runs f on the pure-Go kernels.
func withTwin(f func()) {
	oldVectorised, oldWide := vectorised, wide
	vectorised, wide = false, false
	defer func() { vectorised, wide = oldVectorised, oldWide }()
	f()
}

// withAVX2 runs f without AVX-512.
func withAVX2(f func()) {
	old := wide
	wide = false
	defer func() { wide = old }()
	f()
}

// peakFlops measures what fused multiply-adds alone reach.
func peakFlops[F Float]() float64 {
	const rounds = 20_000
	perRound := 12 * 2 * 2 * float64(lanes[F]()) // twelve wide vectors, two operations each
	run := wideFMAPeakF32
	switch {
	case wide && !isSingle[F]():
		run = wideFMAPeakF64
	case !wide:
		perRound /= 2
		run = fmaPeakF32
		if !isSingle[F]() {
			run = fmaPeakF64
		}
	}
	if !vectorised {
		return 0
	}
	best := &bestPeak[0]
	if !isSingle[F]() {
		best = &bestPeak[1]
	}
	for range 20 {
		start := time.Now()
		run(rounds)
		*best = max(*best, rounds*perRound/time.Since(start).Seconds())
	}
	return *best
}

// bestPeak is the best of the process so far: others may use the machine while
// one measurement lasts.
var bestPeak [2]float64
