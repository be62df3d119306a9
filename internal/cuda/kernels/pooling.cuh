// Max-pools of windows of 2x2 behind a convolution, in the kernel that computes it: what lies
// between both stays in the block.
#pragma once
#include "common.cuh"

// Pooling says what a block of pooled makes of its lines, which are whole: so many pooled
// ones, of windows stride apart; and how it holds what they are made of, in lines of pitch
// values.
struct Pooling {
  int outH, outW;  // of the pool
  int lines, stride, pitch;
  unsigned overQuads, overWidth;
};

// SHUT stands where a window's number would: a ReLU lets nothing through, and so no gradient.
enum { SHUT = 255 };

// Unpooling is how gradients go back through such a pool, of windows stride apart.
struct Unpooling {
  int outH, outW, stride;
  const unsigned char *which;
};

// unpooled: the gradient at 4 channels from c on of pixel y, x, of example e: that of the
// windows that took it, in their order. d is the gradient behind the pool.
__device__ __forceinline__ void unpooled(const Unpooling &p, const float *__restrict__ d, int e, int y, int x, int c, int channels, float *s) {
  const bool vector = channels % 4 == 0;
  s[0] = s[1] = s[2] = s[3] = 0.f;
#pragma unroll
  for (int n = 3; n >= 0; n--) {  // the last window that has the pixel has it in its first place
    const int fy = y - n / 2, fx = x - n % 2, oy = p.stride == 1 ? fy : fy >> 1, ox = p.stride == 1 ? fx : fx >> 1;
    if (fy < 0 || fx < 0 || oy >= p.outH || ox >= p.outW || oy * p.stride != fy || ox * p.stride != fx) continue;
    const size_t o = (((size_t)e * p.outH + oy) * p.outW + ox) * channels + c;
    float v[4];
    load4(d + o, v, channels - c, vector);
    if (vector) {
      const unsigned took = *(const unsigned *)(p.which + o);
#pragma unroll
      for (int k = 0; k < 4; k++)
        if ((took >> 8 * k & 255) == n) s[k] += v[k];
    } else {
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (k < channels - c && p.which[o + k] == n) s[k] += v[k];
    }
  }
}

// takeLargest: after(the largest of every window, the first of equals), and which that was, of
// a block's lines of picture e from the pool's line0 on. They lie in lines of p.pitch values,
// and in pixels of wide, of which so many quads are there, from channel0 on of all channels.
__device__ __forceinline__ void takeLargest(const Pooling &p, const float *zs, int wide, int quads, int e, int line0, int channel0, int channels, Act act, Act after,
                                            float *out, unsigned char *which) {
  const int lines = p.outH - line0 < p.lines ? p.outH - line0 : p.lines;
  const bool vector = channels % 4 == 0;
#pragma unroll 1
  for (int i = threadIdx.x; i < lines * p.outW * quads; i += blockDim.x) {
    const int q = divided(i, p.overQuads), o4 = 4 * (i - q * quads), y = divided(q, p.overWidth), x = q - y * p.outW, some = channels - channel0 - o4;
    if (some <= 0) continue;
    const float *z = zs + y * p.stride * p.pitch + x * p.stride * wide + o4;
    float best[4];
    unsigned at[4] = {};
    *(float4 *)best = *(const float4 *)z;
#pragma unroll
    for (int n = 1; n < 4; n++) {
      float v[4];
      *(float4 *)v = *(const float4 *)(z + n / 2 * p.pitch + n % 2 * wide);
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (v[k] > best[k]) best[k] = v[k], at[k] = n;
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
      if (act.kind == 1 && !(best[k] > 0.f)) at[k] = SHUT;
      best[k] = apply(after, best[k]);
    }
    const size_t o = (((size_t)e * p.outH + line0 + y) * p.outW + x) * channels + channel0 + o4;
    store4(out + o, best, some, vector);
    if (vector)
      *(unsigned *)(which + o) = at[0] | at[1] << 8 | at[2] << 16 | at[3] << 24;
    else
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (k < some) which[o + k] = at[k];
  }
}
