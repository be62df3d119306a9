// What kernels are given that compute norms of several layers on places.
#pragma once
#include "common.cuh"

// Halves are layers that a launch has in common. Share is by how much of the square of the
// places' lengths, added up, rounding may have made a square too small.
struct HalfOf {
  const float *x, *d;
  double share;
  int in, out, bias, squares0;
};
struct Halves {
  HalfOf of[4];
  Room room;
};
