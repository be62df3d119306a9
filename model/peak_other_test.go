//go:build !amd64 || purego

package model

// peakFlops is unknown without assembly.
func peakFlops() float64 { return 0 }
