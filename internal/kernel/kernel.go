// Package kernel holds vector and matrix kernels: generated AVX2 and AVX-512 assembly and its pure-Go twin.
//
// Every function is generic over float32 and float64. On amd64 machines with
// AVX2 and FMA it runs the assembly, elsewhere and under the build tag purego
// its twin in Go; Name says which. The two agree to the tolerances that the
// tests state, not to the last bit. On one of them a call's result depends on
// its arguments alone. Products and convolutions use AVX-512 where there is any:
// every element is still summed in the same order, so it changes no bit.
//
// Nothing here starts a goroutine or keeps state: callers split work into fixed
// chunks and add them up in fixed order. No call into assembly lasts longer
// than some microseconds, so the scheduler is never held up. Empty slices are
// fine. Slices of the wrong length are a programming error and panic with a
// message that begins with "kernel:".
//
// A destination may be the same slice as a source of an element-wise function;
// slices must not overlap in any other way.
package kernel

import (
	"fmt"
	"unsafe"
)

//go:generate go run -C gen . -dir ..

// Float is the type of the values.
type Float interface{ float32 | float64 }

// Name is the kernel set in use: "avx512", "avx2" or "purego".
func Name() string {
	switch {
	case wide:
		return "avx512"
	case vectorised:
		return "avx2"
	}
	return "purego"
}

// isSingle is decided when the code is compiled for one type of values.
func isSingle[F Float]() bool {
	var f F
	return unsafe.Sizeof(f) == 4
}

// chunk is the number of values that one call into assembly works on.
const chunk = 4096

// checkLength panics unless a slice has the length of the others.
func checkLength(function string, got, want int) {
	if got != want {
		panicLength(function, got, want)
	}
}

// panicLength stays apart so that checkLength is inlined.
//
//go:noinline
func panicLength(function string, got, want int) {
	panic(fmt.Sprintf("kernel: %s: a slice of length %d, want %d", function, got, want))
}
