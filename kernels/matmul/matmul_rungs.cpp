#include "kernels/matmul/matmul_rungs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace launchgap::kernels {
namespace {

constexpr std::size_t kParameters[] =
    {sizeof(void*), sizeof(void*), sizeof(void*), sizeof(int), sizeof(int), sizeof(int)};

struct Arguments {
  const void *a, *b;
  void* c;
  int m, n, k;
};
Arguments unpacked(void* const* arguments) {
  return {*static_cast<const void* const*>(arguments[0]),
          *static_cast<const void* const*>(arguments[1]),
          *static_cast<void* const*>(arguments[2]),
          *static_cast<const int*>(arguments[3]),
          *static_cast<const int*>(arguments[4]),
          *static_cast<const int*>(arguments[5])};
}

/// A row of A and a column of B for each element, as everybody writes it first.
void naive(void* const* arguments, LaunchShape) {
  const auto [a, b, c, m, n, k] = unpacked(arguments);
  const auto* const left = static_cast<const float*>(a);
  const auto* const right = static_cast<const float*>(b);
  const auto width = static_cast<std::size_t>(n), depth = static_cast<std::size_t>(k);
  for (std::size_t row = 0; row < static_cast<std::size_t>(m); ++row) {
    for (std::size_t column = 0; column < width; ++column) {
      float sum = 0;
      for (std::size_t i = 0; i < depth; ++i)
        sum += left[row * depth + i] * right[i * width + column];
      static_cast<float*>(c)[row * width + column] = sum;
    }
  }
}

template <ElementType kType>
void blocked(void* const* arguments, LaunchShape) {
  const auto [a, b, c, m, n, k] = unpacked(arguments);
  multiply_on_host(a, b, c, 0, m, n, k, kType);
}

const KernelDescription naive_kernel{"launchgap_matmul_naive", kParameters, naive};
const KernelDescription tiles_kernel{"launchgap_matmul_tiles",
                                     kParameters,
                                     blocked<ElementType::fp32>};
const KernelDescription wmma_kernel{"launchgap_matmul_wmma",
                                    kParameters,
                                    blocked<ElementType::fp16>,
                                    0,
                                    70};
const KernelDescription mma_kernel{"launchgap_matmul_mma",
                                   kParameters,
                                   blocked<ElementType::bf16>,
                                   80,
                                   80};

constexpr std::size_t kTensorMapBytes = 128;
constexpr std::size_t kParametersWithMaps[] =
    {kTensorMapBytes, kTensorMapBytes, sizeof(void*), sizeof(int), sizeof(int), sizeof(int)};
/// Four stages of boxes of A and B, and two mbarriers for each.
constexpr unsigned kWgmmaSharedBytes = 4 * (128 * 64 + 256 * 64) * 2 + 2 * 4 * 8;

/// The same, of matrices that tensor maps name.
void blocked_with_maps(void* const* arguments, LaunchShape shape) {
  const void *a = mapped_matrix(arguments[0]), *b = mapped_matrix(arguments[1]);
  void* const pointers[] = {&a, &b, arguments[2], arguments[3], arguments[4], arguments[5]};
  blocked<ElementType::bf16>(pointers, shape);
}
const KernelDescription wgmma_kernel{"launchgap_matmul_wgmma",
                                     kParametersWithMaps,
                                     blocked_with_maps,
                                     90,
                                     90,
                                     90,
                                     kWgmmaSharedBytes};
/// As wgmma's, with one mbarrier more, and where the sums are.
constexpr unsigned kTcgen05SharedBytes = kWgmmaSharedBytes + 2 * 8;
const KernelDescription tcgen05_kernel{"launchgap_matmul_tcgen05",
                                       kParametersWithMaps,
                                       blocked_with_maps,
                                       100,
                                       100,
                                       103,
                                       kTcgen05SharedBytes};

constexpr std::array<Rung, 6> kRungs = {
    {{"naive",
      &naive_kernel,
      ElementType::fp32,
      "fp32",
      128,
      0,
      0,
      true,
      1,
      0,
      0,
      "a thread for each element, from memory",
      0.08},
     {"tiles",
      &tiles_kernel,
      ElementType::fp32,
      "fp32",
      256,
      128,
      128,
      true,
      1,
      0,
      0,
      "Kepler: tiles in shared memory; on the host blocks that its caches hold",
      0.5},
     {"wmma",
      &wmma_kernel,
      ElementType::fp16,
      "fp16",
      128,
      64,
      64,
      false,
      32,
      0,
      0,
      "Volta: tensor cores by WMMA",
      0.3},
     {"mma",
      &mma_kernel,
      ElementType::bf16,
      "bf16",
      128,
      128,
      128,
      false,
      32,
      0,
      0,
      "Ampere: mma.sync, with copies that run ahead",
      0.6},
     {"wgmma",
      &wgmma_kernel,
      ElementType::bf16,
      "bf16",
      384,
      128,
      256,
      false,
      64,
      128,
      64,
      "Hopper: wgmma, with TMA and a warp that only brings",
      0.8},
     {"tcgen05",
      &tcgen05_kernel,
      ElementType::bf16,
      "bf16",
      128,
      128,
      256,
      false,
      64,
      128,
      64,
      "Blackwell: tcgen05, with TMA and sums in tensor memory",
      0.8}}};

}  // namespace

std::span<const Rung> rungs() {
  return kRungs;
}

const Rung* find_rung(std::string_view name) {
  const auto found = std::ranges::find(kRungs, name, &Rung::name);
  return found == kRungs.end() ? nullptr : &*found;
}

const Rung* rung_of(const KernelDescription& kernel) {
  const auto found = std::ranges::find(kRungs, &kernel, &Rung::kernel);
  return found == kRungs.end() ? nullptr : &*found;
}

LaunchShape launch_shape(const Rung& rung, int m, int n) {
  const auto parts = [](unsigned size, unsigned tile) { return (size + tile - 1) / tile; };
  const auto height = static_cast<unsigned>(m), width = static_cast<unsigned>(n);
  const unsigned blocks = rung.height == 0 ? parts(height * width, rung.threads)
                                           : parts(height, rung.height) * parts(width, rung.width);
  return {blocks, rung.threads, rung.kernel->shared_bytes};
}

void multiply_on_host(const void* a,
                      const void* b,
                      void* c,
                      int first,
                      int last,
                      int n,
                      int k,
                      ElementType type) {
  // Strips of B that the nearest caches hold, each read for all rows.
  constexpr std::size_t kDepth = 128, kWidth = 512;
  const auto width = static_cast<std::size_t>(n), depth = static_cast<std::size_t>(k);
  const auto rows = static_cast<std::size_t>(last - first);
  std::vector<float> strip(kDepth * kWidth), sums(rows * width, 0.0f), of_a(rows * kDepth);
  const auto load = [type](const void* from, std::size_t i) {
    return type == ElementType::fp32 ? static_cast<const float*>(from)[i]
                                     : static_cast<float>(load_element(from, i, type));
  };
  for (std::size_t top = 0; top < depth; top += kDepth) {
    const std::size_t height = std::min(kDepth, depth - top);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < height; ++i)
        of_a[row * kDepth + i] = load(a, (static_cast<std::size_t>(first) + row) * depth + top + i);
    }
    for (std::size_t left = 0; left < width; left += kWidth) {
      const std::size_t columns = std::min(kWidth, width - left);
      for (std::size_t i = 0; i < height; ++i) {
        for (std::size_t column = 0; column < columns; ++column)
          strip[i * kWidth + column] = load(b, (top + i) * width + left + column);
      }
      for (std::size_t row = 0; row < rows; ++row) {
        float* const to = &sums[row * width + left];
        for (std::size_t i = 0; i < height; ++i) {
          const float factor = of_a[row * kDepth + i];
          const float* const from = &strip[i * kWidth];
          for (std::size_t column = 0; column < columns; ++column)
            to[column] += factor * from[column];
        }
      }
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    store_element(c, static_cast<std::size_t>(first) * width + i, type, sums[i]);
}

}  // namespace launchgap::kernels
