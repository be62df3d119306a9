//go:build amd64 && !purego

package kernel

// withTwin runs f on the pure-Go kernels.
func withTwin(f func()) {
	old := vectorised
	vectorised = false
	defer func() { vectorised = old }()
	f()
}
