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

// peakFlops is what fused multiply-adds alone reach in single precision: in vectors of
// 32 bytes, and in the widest that the processor has.
func peakFlops() (avx2, widest float64) {
	const rounds = 20_000
	best := func(run func(uintptr), perRound float64) (best float64) {
		for range 20 {
			start := time.Now()
			run(rounds)
			best = max(best, rounds*perRound/time.Since(start).Seconds())
		}
		return best
	}
	avx2 = best(fmaPeak, 12*2*8) // twelve vectors, two operations each
	if strings.Contains(Kernel(), "avx512") {
		return avx2, best(wideFMAPeak, 12*2*16)
	}
	return avx2, avx2
}
