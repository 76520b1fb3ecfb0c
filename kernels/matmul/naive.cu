// C = A B as everybody writes it first, and as it was written for the first GPUs: a thread for each
// element of C, which reads a row of A and a column of B from memory.
//
// The threads of a warp have neighbouring columns, so what they read of B lies side by side, and
// all read the same element of A. Yet each product needs two reads, which caches serve or memory
// does, and the units wait for them: no element is used twice by the thread that has read it.
//
// Any shape. Parameters: const float* a (m x k), const float* b (k x n), float* c (m x n), int m,
// int n, int k; rows without gaps.
#include "../ladder/instructions.h"

namespace launchgap::kernels {

extern "C" __global__ void launchgap_matmul_naive(const float* a,
                                                  const float* b,
                                                  float* c,
                                                  int m,
                                                  int n,
                                                  int k) {
  const unsigned width = static_cast<unsigned>(n), depth = static_cast<unsigned>(k);
  const unsigned row = global_thread() / width, column = global_thread() % width;
  if (row >= static_cast<unsigned>(m)) return;
  float sum = 0;
  for (unsigned i = 0; i < depth; ++i) sum += at(a, row * depth + i) * at(b, i * width + column);
  at(c, row * width + column) = sum;
}

}  // namespace launchgap::kernels
