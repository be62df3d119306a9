// Values in two parts of float16, for products that groups of warps make: of the products of two
// values' parts three are added, half as many as of three parts of bfloat16. A part has 11 bits,
// and float16 few sizes: so values that are added up together, of one line, are first multiplied
// by a power of two, exactly, that has the largest of them lie between 2^14 and 2^15, and what
// comes of products is taken back. What both parts leave of a value is at most 2^-23 of it, or
// 2^-39 of the largest, and what is left out of a product, that of the second parts, at most 2^-22.
#pragma once
#include "tensor.cuh"

enum { TWO = 2 };

#ifdef EMULATED
inline unsigned emu_float16(float v) {  // rounded to nearest, ties to even
  unsigned u = emu_bits(v), sign = u >> 16 & 0x8000, size = u & 0x7fffffff;
  if (size > 0x7f800000) return sign | 0x7e00;
  if (size >= 0x477ff000) return sign | 0x7c00;  // from 65520 on
  if (size < 0x38800000) return sign | (emu_bits(emu_value(size) + 0.5f) - emu_bits(0.5f));  // subnormal: 0.5's units are 2^-24
  return sign | ((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
}
struct EmuWide {  // what every value of float16 is
  float values[1 << 16];
  EmuWide() {
    for (unsigned h = 0; h < 1 << 16; h++) {
      unsigned size = h & 0x7fff;
      float v = size < 0x400 ? emu_value(size + emu_bits(0.5f)) - 0.5f : emu_value(size < 0x7c00 ? (size << 13) + 0x38000000 : (size << 13) + 0x70000000);
      values[h] = h & 0x8000 ? -v : v;
    }
  }
};
inline const EmuWide emu_wides;
inline float emu_wide(unsigned h) { return emu_wides.values[h & 0xffff]; }
inline unsigned packedTwo(float x, float y) { return emu_float16(x) | emu_float16(y) << 16; }
inline float lowerTwo(unsigned p) { return emu_wide(p & 0xffff); }
inline float upperTwo(unsigned p) { return emu_wide(p >> 16); }
inline unsigned doubledTwo(unsigned p) { return packedTwo(2 * lowerTwo(p), 2 * upperTwo(p)); }
inline unsigned largerTwo(unsigned a, unsigned b) { return ((a & 0xffff) > (b & 0xffff) ? a & 0xffff : b & 0xffff) | (a >> 16 > b >> 16 ? a & 0xffff0000u : b & 0xffff0000u); }
inline unsigned bitsOf(float v) { return emu_bits(v); }
inline float valueOf(unsigned u) { return emu_value(u); }
#else
__device__ __forceinline__ unsigned packedTwo(float x, float y) {
  unsigned p;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(p) : "f"(y), "f"(x));
  return p;
}
__device__ __forceinline__ float lowerTwo(unsigned p) {
  float v;
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low;}" : "=f"(v) : "r"(p));
  return v;
}
__device__ __forceinline__ float upperTwo(unsigned p) {
  float v;
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, high;}" : "=f"(v) : "r"(p));
  return v;
}
// doubledTwo is twice what both values of float16 are, exactly.
__device__ __forceinline__ unsigned doubledTwo(unsigned p) {
  asm("add.rn.f16x2 %0, %1, %1;" : "=r"(p) : "r"(p));
  return p;
}
// largerTwo has the larger one of both halves.
__device__ __forceinline__ unsigned largerTwo(unsigned a, unsigned b) { return __vmaxu2(a, b); }
__device__ __forceinline__ unsigned bitsOf(float v) { return __float_as_uint(v); }
__device__ __forceinline__ float valueOf(unsigned u) { return __uint_as_float(u); }
#endif

// divideTwo takes two values apart: of each pair x is in the lower half.
__device__ __forceinline__ void divideTwo(float x, float y, unsigned (&to)[TWO]) {
  to[0] = packedTwo(x, y);
  to[1] = packedTwo(x - lowerTwo(to[0]), y - upperTwo(to[0]));
}

// Scale is what values are multiplied by, and what takes products back.
struct Scale {
  float by, back;
};

// LEAST_EXPONENT has back be a number that is not subnormal; below it values are small, and stay so.
enum { LEAST_EXPONENT = 15 };

// scaleOf is that of values whose largest has these bits of an exponent: of one that is not finite,
// it stays so.
__device__ __forceinline__ Scale scaleOf(unsigned exponent, unsigned least = LEAST_EXPONENT) {
  if (exponent < least) exponent = least;
  return {valueOf((268 - exponent) << 23), valueOf((exponent - 14) << 23)};
}

// upperHalves are those of two sizes, the first one's in the lower half: enough to tell which is
// larger. exponentOf has the bits of one's exponent.
__device__ __forceinline__ unsigned upperHalves(float x, float y) { return bitsOf(x) >> 16 | (bitsOf(y) & 0xffff0000u); }
__device__ __forceinline__ unsigned exponentOf(unsigned halves, int which) { return which ? halves >> 23 : halves >> 7 & 0xff; }

__device__ __forceinline__ float largest(float a, float b, float c, float d) { return fmaxf(fmaxf(fabsf(a), fabsf(b)), fmaxf(fabsf(c), fabsf(d))); }
