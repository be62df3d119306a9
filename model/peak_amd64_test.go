//go:build amd64 && !purego

package model

import (
	"strings"
	"time"
	_ "unsafe" // for linkname
)

// The kernels' own measure of the machine: fused multiply-adds and nothing else.
//
//go:linkname fmaPeak github.com/coterie-fl/coterie/internal/kernel.fmaPeakF32
func fmaPeak(rounds uintptr)

//go:linkname wideFMAPeak github.com/coterie-fl/coterie/internal/kernel.wideFMAPeakF32
func wideFMAPeak(rounds uintptr)

// peakFlops is what fused multiply-adds alone reach in single precision.
func peakFlops() (best float64) {
	const rounds = 20_000
	run, perRound := fmaPeak, 12*2*8.0 // twelve vectors, two operations each
	if strings.Contains(Kernel(), "avx512") {
		run, perRound = wideFMAPeak, 2*perRound
	}
	for range 20 {
		start := time.Now()
		run(rounds)
		best = max(best, rounds*perRound/time.Since(start).Seconds())
	}
	return best
}
