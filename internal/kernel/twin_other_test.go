//go:build !amd64 || purego

package kernel

// withTwin runs f on the pure-Go kernels: there are no others in this build.
func withTwin(f func()) { f() }

// withAVX2 runs f: there is nothing to leave out.
func withAVX2(f func()) { f() }

// peakFlops is unknown without assembly.
func peakFlops[F Float]() float64 { return 0 }
