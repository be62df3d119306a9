//go:build amd64 && !purego

package model

import _ "unsafe" // for linkname

// The kernels' own measure of the machine: fused multiply-adds and nothing else.
//
//go:linkname fmaPeak github.com/coterie-fl/coterie/internal/kernel.fmaPeakF32
func fmaPeak(rounds uintptr)

//go:linkname wideFMAPeak github.com/coterie-fl/coterie/internal/kernel.wideFMAPeakF32
func wideFMAPeak(rounds uintptr)

//go:linkname kernelsUseAVX512 github.com/coterie-fl/coterie/internal/kernel.wide
var kernelsUseAVX512 bool

// withoutAVX512 runs f as on a processor that has none.
func withoutAVX512(f func()) {
	kept := kernelsUseAVX512
	kernelsUseAVX512 = false
	f()
	kernelsUseAVX512 = kept
}

// peakFlops is what fused multiply-adds alone reach in single precision at this moment,
// by processor time: in vectors of 32 bytes, and in the widest that the processor has.
func peakFlops() (avx2, widest float64) {
	const rounds, times = 20_000, 200
	reached := func(run func(uintptr), perRound float64) float64 {
		start := cpu()
		for range times {
			run(rounds)
		}
		return times * rounds * perRound / (cpu() - start).Seconds()
	}
	avx2 = reached(fmaPeak, 12*2*8) // twelve vectors, two operations each
	if Kernel() == "avx512" {
		return avx2, reached(wideFMAPeak, 12*2*16)
	}
	return avx2, avx2
}
