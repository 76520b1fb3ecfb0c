// Multiplies and adds in registers alone, as fast as the vector units can: what a GPU does at most.
// Each thread has kMultiplyAddChains numbers, which begin with thread % kMultiplyAddStarts and
// those after it; each is multiplied by `factor` and `addend` is added, `steps` times.
// results[thread] is their sum. Parameters: double* results, unsigned steps, int in_double (else
// FP32), double factor, double addend.
#ifdef LAUNCHGAP_DEVICE_CODE

#include "device.h"
#include "multiply_add.h"

using launchgap::kernels::kMultiplyAddChains;
using launchgap::kernels::kMultiplyAddStarts;

template <class Number>
__device__ double chains(unsigned start, unsigned steps, Number factor, Number addend) {
  Number values[kMultiplyAddChains];
#pragma unroll
  for (unsigned i = 0; i < kMultiplyAddChains; ++i) values[i] = static_cast<Number>(start + i);
#pragma unroll 16
  for (unsigned step = 0; step < steps; ++step) {
#pragma unroll
    for (unsigned i = 0; i < kMultiplyAddChains; ++i) values[i] = values[i] * factor + addend;
  }
  double sum = 0;
#pragma unroll
  for (unsigned i = 0; i < kMultiplyAddChains; ++i) sum += static_cast<double>(values[i]);
  return sum;
}

extern "C" __global__ void launchgap_multiply_add(double* results,
                                                  unsigned steps,
                                                  int in_double,
                                                  double factor,
                                                  double addend) {
  const unsigned start = global_thread() % kMultiplyAddStarts;
  results[global_thread()] =
      in_double
          ? chains<double>(start, steps, factor, addend)
          : chains<float>(start, steps, static_cast<float>(factor), static_cast<float>(addend));
}

#else

#include "kernels/kernels.h"
#include "kernels/multiply_add.h"

namespace launchgap::kernels {
namespace {

constexpr std::size_t kParameters[] = {sizeof(double*),
                                       sizeof(unsigned),
                                       sizeof(int),
                                       sizeof(double),
                                       sizeof(double)};

/// Of each of a thread's beginnings the sum. A number that several begin with is computed once, and
/// none waits for another.
template <class Number>
void add_chains(double (&sums)[kMultiplyAddStarts], unsigned steps, Number factor, Number addend) {
  constexpr unsigned kNumbers = kMultiplyAddStarts - 1 + kMultiplyAddChains;
  Number values[kNumbers];
  for (unsigned i = 0; i < kNumbers; ++i) values[i] = static_cast<Number>(i);
  for (unsigned step = 0; step < steps; ++step) {
    for (Number& value : values) value = value * factor + addend;
  }
  for (unsigned start = 0; start < kMultiplyAddStarts; ++start) {
    for (unsigned i = 0; i < kMultiplyAddChains; ++i)
      sums[start] += static_cast<double>(values[start + i]);
  }
}

/// Threads that begin alike end alike, so one of each is computed.
void multiply_add(void* const* arguments, LaunchShape shape) {
  double* const results = *static_cast<double* const*>(arguments[0]);
  const unsigned steps = *static_cast<const unsigned*>(arguments[1]);
  const int in_double = *static_cast<const int*>(arguments[2]);
  const double factor = *static_cast<const double*>(arguments[3]);
  const double addend = *static_cast<const double*>(arguments[4]);
  double of_start[kMultiplyAddStarts] = {};
  if (in_double) {
    add_chains<double>(of_start, steps, factor, addend);
  } else {
    add_chains<float>(of_start, steps, static_cast<float>(factor), static_cast<float>(addend));
  }
  for (unsigned thread = 0; thread < shape.blocks * shape.threads; ++thread)
    results[thread] = of_start[thread % kMultiplyAddStarts];
}

}  // namespace

const KernelDescription multiply_add_kernel{"launchgap_multiply_add", kParameters, multiply_add};

}  // namespace launchgap::kernels

#endif
