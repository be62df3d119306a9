//go:build !amd64 || purego

package kernel

// withTwin runs f on the pure-Go kernels: there are no others in this build.
func withTwin(f func()) { f() }

// peakFlops is unknown without assembly.
func peakFlops[F Float]() float64 { return 0 }
