// All kernels of the CUDA backend, for shapes that are known at run time: one source for
// devices (nvcc) and, with EMULATED, for tests on a processor (g++, emu/).
#include "common.cuh"
#include "conv.cuh"
#include "direct.cuh"
#include "pooled.cuh"
#include "taps.cuh"
#include "dense.cuh"
#include "other.cuh"
#include "resident.cuh"
#include "attention.cuh"
#include "norm.cuh"
#include "tokens.cuh"
#include "words.cuh"
