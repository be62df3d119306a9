// What becomes of products of matrices, and what sums of them are of, whichever way they are
// computed.
#pragma once
#include "common.cuh"

// Beside is what lies beside two values of a product.
struct Beside {
  float2 plus, at;
};

// TimesEnd is what becomes of a product's values: act(product + bias + plus); before, of a gelu,
// is what goes into it. Bias, plus and before may be null.
template <bool GELU>
struct TimesEnd {
  const float *bias, *plus;
  float *before, *out;
  int N;
  Act act;
  __device__ __forceinline__ Beside read(int m, int n) const {
    Beside b = {};
    if (plus) b.plus = *(const float2 *)(plus + (size_t)m * N + n);
    if (bias) b.at = *(const float2 *)(bias + n);
    return b;
  }
  __device__ __forceinline__ void write(int m, int n, float u, float v, const Beside &b) const {
    size_t o = (size_t)m * N + n;
    if (bias) u += b.at.x, v += b.at.y;
    if (plus) u += b.plus.x, v += b.plus.y;
    if (GELU) *(float2 *)(before + o) = make_float2(u, v);
    *(float2 *)(out + o) = GELU ? make_float2(geluAt(u), geluAt(v)) : make_float2(apply(act, u), apply(act, v));
  }
};

// BackEnd is that of a way back: (product + plus), times the slope of gate at its output, or a
// gelu's input. Plus may be null.
template <bool GELU>
struct BackEnd {
  const float *plus, *gateAt;
  float *dx;
  int N;
  Act gate;
  __device__ __forceinline__ Beside read(int m, int n) const {
    Beside b = {};
    size_t o = (size_t)m * N + n;
    if (plus) b.plus = *(const float2 *)(plus + o);
    if (gate.kind) b.at = *(const float2 *)(gateAt + o);
    return b;
  }
  __device__ __forceinline__ void write(int m, int n, float u, float v, const Beside &b) const {
    if (plus) u += b.plus.x, v += b.plus.y;
    if (GELU)
      u *= geluSlope(b.at.x), v *= geluSlope(b.at.y);
    else if (gate.kind)
      u = slopeAt(gate, b.at.x, u), v = slopeAt(gate, b.at.y, v);
    *(float2 *)(dx + (size_t)m * N + n) = make_float2(u, v);
  }
};

// Summed is a layer on places whose examples' gradients are added up, weighted: x times d, [m][n],
// and behind them, if there is a bias, d alone. First is where its blocks begin, and adds where
// those begin that add its parts to the sum.
struct Summed {
  const float *x, *d;
  float *parts, *sum;
  int m, n, bias, first, adds;
};

// Summeds are layers that a launch has in common, each in split parts.
struct Summeds {
  Summed of[16];
  int count, split;
};
