// The kernels that use tensor cores, for devices of compute capability 8.0 on: a module of
// their own, since others would not load it.
#include "tensor.cuh"
#include "tensor_conv.cuh"
#include "tensor_taps.cuh"
#include "products.cuh"
