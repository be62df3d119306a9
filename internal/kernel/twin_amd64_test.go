//go:build amd64 && !purego

package kernel

import "time"

// withTwin runs f on the pure-Go kernels.
func withTwin(f func()) {
	old := vectorised
	vectorised = false
	defer func() { vectorised = old }()
	f()
}

// peakFlops measures what fused multiply-adds alone reach.
func peakFlops[F Float]() float64 {
	const rounds = 20_000
	perRound := 12 * 16.0 // twelve vectors of eight, two operations each
	run := fmaPeakF32
	if !isSingle[F]() {
		perRound, run = 12*8.0, fmaPeakF64
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
