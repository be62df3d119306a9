//go:build !amd64 || purego

package model

// peakFlops is unknown without assembly.
func peakFlops() (avx2, widest float64) { return 0, 0 }

// withoutAVX512 runs f: there is none.
func withoutAVX512(f func()) { f() }
