// What becomes of products of matrices, and what sums of them are of, whichever way they are
// computed.
#pragma once
#include "common.cuh"

// Values is how many of a product's values an end has at a time: one, two or four that lie side
// by side.
template <int N>
struct Values;
template <>
struct Values<2> {
  typedef float2 Type;
};
template <>
struct Values<4> {
  typedef float4 Type;
};
__device__ __forceinline__ void spreadOut(const float2 &v, float (&to)[2]) { to[0] = v.x, to[1] = v.y; }
__device__ __forceinline__ void spreadOut(const float4 &v, float (&to)[4]) { to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w; }
__device__ __forceinline__ float2 gathered(const float (&v)[2]) { return make_float2(v[0], v[1]); }
__device__ __forceinline__ float4 gathered(const float (&v)[4]) { return make_float4(v[0], v[1], v[2], v[3]); }

// Beside is what lies beside N values of a product.
template <int N>
struct Beside {
  float plus[N], at[N];
  __device__ __forceinline__ void readPlus(const float *from) { spreadOut(*(const typename Values<N>::Type *)from, plus); }
  __device__ __forceinline__ void readAt(const float *from) { spreadOut(*(const typename Values<N>::Type *)from, at); }
};
template <int N>
__device__ __forceinline__ void put(float *to, const float (&v)[N]) {
  *(typename Values<N>::Type *)to = gathered(v);
}

// TimesEnd is what becomes of a product's values: act(product + bias + plus); before, of a gelu,
// is what goes into it. Bias, plus and before may be null.
template <bool GELU>
struct TimesEnd {
  enum { MUCH = GELU };  // is written
  const float *bias, *plus;
  float *before, *out;
  int columns;
  Act act;
  template <int N>
  __device__ __forceinline__ void read(Beside<N> &b, int m, int n) const {
    if (plus) b.readPlus(plus + (size_t)m * columns + n);
    if (bias) b.readAt(bias + n);
  }
  template <int N>
  __device__ __forceinline__ void write(float (&v)[N], int m, int n, const Beside<N> &b) const {
    size_t o = (size_t)m * columns + n;
#pragma unroll
    for (int i = 0; i < N; i++) {
      if (bias) v[i] += b.at[i];
      if (plus) v[i] += b.plus[i];
    }
    if (GELU) put(before + o, v);
#pragma unroll
    for (int i = 0; i < N; i++) v[i] = GELU ? geluAt(v[i]) : apply(act, v[i]);
    put(out + o, v);
  }
};

// BackEnd is that of a way back: (product + plus), times the slope of gate at its output, or a
// gelu's input. Plus may be null.
template <bool GELU>
struct BackEnd {
  enum { MUCH = GELU };  // is read and written
  const float *plus, *gateAt;
  float *dx;
  int columns;
  Act gate;
  template <int N>
  __device__ __forceinline__ void read(Beside<N> &b, int m, int n) const {
    if (plus) b.readPlus(plus + (size_t)m * columns + n);
    if (gate.kind) b.readAt(gateAt + (size_t)m * columns + n);
  }
  template <int N>
  __device__ __forceinline__ void write(float (&v)[N], int m, int n, const Beside<N> &b) const {
#pragma unroll
    for (int i = 0; i < N; i++) {
      if (plus) v[i] += b.plus[i];
      v[i] = GELU ? v[i] * geluSlope(b.at[i]) : gate.kind ? slopeAt(gate, b.at[i], v[i]) : v[i];
    }
    put(dx + (size_t)m * columns + n, v);
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
