//go:build !linux

package sim

// peakMemory is not known here.
func peakMemory() int64 { return 0 }
