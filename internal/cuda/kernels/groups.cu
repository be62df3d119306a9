// The kernels for groups of warps, of compute capability 9.0 alone: a module of their own.
#include "group_products.cuh"
#include "group_norms.cuh"
#include "text_products.cuh"
#include "text_chain.cuh"
#include "text_attention.cuh"
#include "text_sums.cuh"
#include "text_words.cuh"
