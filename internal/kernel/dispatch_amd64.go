//go:build amd64 && !purego

package kernel

import "unsafe"

// vectorised: the assembly runs on this machine; wide: products and convolutions
// use AVX-512, with the same results to the last bit.
var vectorised, wide = machine()

// machine asks for AVX2 and FMA, and for AVX-512's foundation, and whether the
// operating system saves the vector registers (Intel's manual, volume 1, sections
// 14.7.1 and 15.2).
func machine() (avx2, avx512 bool) {
	const (
		fma, osxsave, avx = 1 << 12, 1 << 27, 1 << 28 // leaf 1, ECX
		avx2Bit, bmi2     = 1 << 5, 1 << 8            // leaf 7, EBX
		avx512Foundation  = 1 << 16                   // leaf 7, EBX
		saved             = 1<<1 | 1<<2               // XMM and YMM state
		savedWide         = saved | 1<<5 | 1<<6 | 1<<7
	)
	if highest, _, _, _ := cpuid(0, 0); highest < 7 {
		return false, false
	}
	_, _, features, _ := cpuid(1, 0)
	if want := uint32(fma | osxsave | avx); features&want != want {
		return false, false
	}
	state, _ := xgetbv()
	_, more, _, _ := cpuid(7, 0)
	has := func(bits, registers uint32) bool { return more&bits == bits && state&registers == registers }
	return has(avx2Bit, saved), has(avx2Bit|bmi2|avx512Foundation, savedWide)
}

func f32[F Float](x []F) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(x))) }
func f64[F Float](x []F) *float64 { return (*float64)(unsafe.Pointer(unsafe.SliceData(x))) }

func axpy[F Float](alpha F, x, y []F) {
	switch {
	case !vectorised:
		axpyTwin(alpha, x, y)
	case isSingle[F]():
		axpyF32(uintptr(len(x)), float32(alpha), f32(x), f32(y))
	default:
		axpyF64(uintptr(len(x)), float64(alpha), f64(x), f64(y))
	}
}

func scale[F Float](dst []F, alpha F, x []F) {
	switch {
	case !vectorised:
		scaleTwin(dst, alpha, x)
	case isSingle[F]():
		scaleF32(uintptr(len(x)), float32(alpha), f32(dst), f32(x))
	default:
		scaleF64(uintptr(len(x)), float64(alpha), f64(dst), f64(x))
	}
}

func sub[F Float](dst, x, y []F) {
	switch {
	case !vectorised:
		subTwin(dst, x, y)
	case isSingle[F]():
		subF32(uintptr(len(dst)), f32(dst), f32(x), f32(y))
	default:
		subF64(uintptr(len(dst)), f64(dst), f64(x), f64(y))
	}
}

func maximum[F Float](dst, x, y []F) {
	switch {
	case !vectorised:
		maximumTwin(dst, x, y)
	case isSingle[F]():
		maximumF32(uintptr(len(dst)), f32(dst), f32(x), f32(y))
	default:
		maximumF64(uintptr(len(dst)), f64(dst), f64(x), f64(y))
	}
}

func maxPoolGrad[F Float](left, y, x, dx []F) {
	switch {
	case !vectorised:
		maxPoolGradTwin(left, y, x, dx)
	case isSingle[F]():
		maxPoolGradF32(uintptr(len(left)), f32(left), f32(y), f32(x), f32(dx))
	default:
		maxPoolGradF64(uintptr(len(left)), f64(left), f64(y), f64(x), f64(dx))
	}
}

func maximum4[F Float](dst, a, b, c, d []F) {
	switch {
	case !vectorised:
		maximum4Twin(dst, a, b, c, d)
	case isSingle[F]():
		maximum4F32(uintptr(len(dst)), f32(dst), f32(a), f32(b), f32(c), f32(d))
	default:
		maximum4F64(uintptr(len(dst)), f64(dst), f64(a), f64(b), f64(c), f64(d))
	}
}

func maxPoolGradPair[F Float](left, y, a, b, da, db []F) {
	switch {
	case !vectorised:
		maxPoolGradPairTwin(left, y, a, b, da, db)
	case isSingle[F]():
		maxPoolGradPairF32(uintptr(len(left)), f32(left), f32(y), f32(a), f32(b), f32(da), f32(db))
	default:
		maxPoolGradPairF64(uintptr(len(left)), f64(left), f64(y), f64(a), f64(b), f64(da), f64(db))
	}
}

func dot[F Float](x, y []F) float64 {
	if !vectorised {
		return dotTwin(x, y)
	}
	if isSingle[F]() {
		return dotF32(uintptr(len(x)), f32(x), f32(y))
	}
	return dotF64(uintptr(len(x)), f64(x), f64(y))
}

func squaredNorm[F Float](x []F) float64 {
	if !vectorised {
		return squaredNormTwin(x)
	}
	if isSingle[F]() {
		return squaredNormF32(uintptr(len(x)), f32(x))
	}
	return squaredNormF64(uintptr(len(x)), f64(x))
}

func squaredDistance[F Float](x, y []F) float64 {
	if !vectorised {
		return squaredDistanceTwin(x, y)
	}
	if isSingle[F]() {
		return squaredDistanceF32(uintptr(len(x)), f32(x), f32(y))
	}
	return squaredDistanceF64(uintptr(len(x)), f64(x), f64(y))
}

func relu[F Float](dst, x []F) {
	switch {
	case !vectorised:
		reluTwin(dst, x)
	case isSingle[F]():
		reluF32(uintptr(len(x)), f32(dst), f32(x))
	default:
		reluF64(uintptr(len(x)), f64(dst), f64(x))
	}
}

func reluGrad[F Float](dst, x, dy []F) {
	switch {
	case !vectorised:
		reluGradTwin(dst, x, dy)
	case isSingle[F]():
		reluGradF32(uintptr(len(dst)), f32(dst), f32(x), f32(dy))
	default:
		reluGradF64(uintptr(len(dst)), f64(dst), f64(x), f64(dy))
	}
}

func leakyRelu[F Float](dst []F, slope F, x []F) {
	switch {
	case !vectorised:
		leakyReluTwin(dst, slope, x)
	case isSingle[F]():
		leakyReluF32(uintptr(len(x)), float32(slope), f32(dst), f32(x))
	default:
		leakyReluF64(uintptr(len(x)), float64(slope), f64(dst), f64(x))
	}
}

func leakyReluGrad[F Float](dst []F, slope F, x, dy []F) {
	switch {
	case !vectorised:
		leakyReluGradTwin(dst, slope, x, dy)
	case isSingle[F]():
		leakyReluGradF32(uintptr(len(dst)), float32(slope), f32(dst), f32(x), f32(dy))
	default:
		leakyReluGradF64(uintptr(len(dst)), float64(slope), f64(dst), f64(x), f64(dy))
	}
}

func sigmoidGrad[F Float](dst, y, dy []F) {
	switch {
	case !vectorised:
		sigmoidGradTwin(dst, y, dy)
	case isSingle[F]():
		sigmoidGradF32(uintptr(len(dst)), f32(dst), f32(y), f32(dy))
	default:
		sigmoidGradF64(uintptr(len(dst)), f64(dst), f64(y), f64(dy))
	}
}

func tanhGrad[F Float](dst, y, dy []F) {
	switch {
	case !vectorised:
		tanhGradTwin(dst, y, dy)
	case isSingle[F]():
		tanhGradF32(uintptr(len(dst)), f32(dst), f32(y), f32(dy))
	default:
		tanhGradF64(uintptr(len(dst)), f64(dst), f64(y), f64(dy))
	}
}

func exp[F Float](dst, x []F) {
	switch {
	case !vectorised:
		expTwin(dst, x)
	case isSingle[F]():
		expF32(uintptr(len(x)), f32(dst), f32(x))
	default:
		expF64(uintptr(len(x)), f64(dst), f64(x))
	}
}

func tanh[F Float](dst, x []F) {
	switch {
	case !vectorised:
		tanhTwin(dst, x)
	case isSingle[F]():
		tanhF32(uintptr(len(x)), f32(dst), f32(x))
	default:
		tanhF64(uintptr(len(x)), f64(dst), f64(x))
	}
}

func sigmoid[F Float](dst, x []F) {
	switch {
	case !vectorised:
		sigmoidTwin(dst, x)
	case isSingle[F]():
		sigmoidF32(uintptr(len(x)), f32(dst), f32(x))
	default:
		sigmoidF64(uintptr(len(x)), f64(dst), f64(x))
	}
}
