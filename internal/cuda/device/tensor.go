//go:build linux

package device

// tensorKernels are the names of the kernels in tensor.cu.
func tensorKernels() []string {
	return nil
}
