#include "kernels/convolution/convolution_rungs.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace launchgap::kernels {
namespace {

constexpr std::size_t kParameters[] = {sizeof(void*),
                                       sizeof(void*),
                                       sizeof(void*),
                                       sizeof(ConvolutionSides)};

struct Arguments {
  const void *images, *filters;
  void* output;
  ConvolutionSides sides;
};
Arguments unpacked(void* const* arguments) {
  return {*static_cast<const void* const*>(arguments[0]),
          *static_cast<const void* const*>(arguments[1]),
          *static_cast<void* const*>(arguments[2]),
          *static_cast<const ConvolutionSides*>(arguments[3])};
}

std::size_t size(int side) {
  return static_cast<std::size_t>(side);
}

/// Where an element of a tensor is that has `channels` of h x w pixels.
template <bool kChannelsLast>
std::size_t index_of(int channels, int h, int w, int outer, int channel, int row, int column) {
  if constexpr (kChannelsLast)
    return ((size(outer) * size(h) + size(row)) * size(w) + size(column)) * size(channels) +
           size(channel);
  return ((size(outer) * size(channels) + size(channel)) * size(h) + size(row)) * size(w) +
         size(column);
}

/// A window and a filter for each element of the output, as everybody writes it first.
template <ElementType kType, bool kChannelsLast>
void naive(void* const* arguments, LaunchShape) {
  const auto [images, filters, output, d] = unpacked(arguments);
  const auto load = [](const void* from, std::size_t i) {
    return kType == ElementType::fp32 ? static_cast<const float*>(from)[i]
                                      : static_cast<float>(load_element(from, i, kType));
  };
  for (int n = 0; n < d.n; ++n) {
    for (int k = 0; k < d.k; ++k) {
      for (int p = 0; p < d.out_h; ++p) {
        for (int q = 0; q < d.out_w; ++q) {
          float sum = 0;
          for (int c = 0; c < d.c; ++c) {
            for (int r = 0; r < d.r; ++r) {
              const int row = p * d.stride_h - d.pad_h + r * d.dilation_h;
              if (row < 0 || row >= d.h) continue;
              for (int s = 0; s < d.s; ++s) {
                const int column = q * d.stride_w - d.pad_w + s * d.dilation_w;
                if (column < 0 || column >= d.w) continue;
                sum += load(images, index_of<kChannelsLast>(d.c, d.h, d.w, n, c, row, column)) *
                       load(filters, index_of<kChannelsLast>(d.c, d.r, d.s, k, c, r, s));
              }
            }
          }
          store_element(
              output, index_of<kChannelsLast>(d.k, d.out_h, d.out_w, n, k, p, q), kType, sum);
        }
      }
    }
  }
}

/// The first and the one after the last of `count` places whose element, which lies at
/// place * stride + offset, is one of `size`.
struct Inside {
  int first, last;
};
Inside inside_of(int count, int stride, int offset, int size) {
  const int first = offset < 0 ? (-offset + stride - 1) / stride : 0;
  const int last = offset < size ? std::min(count, (size - 1 - offset) / stride + 1) : 0;
  return {std::min(first, count), std::max(last, std::min(first, count))};
}

/// A channel of an image for a few filters at once: the nearest caches hold both, and the output.
void blocked(void* const* arguments, LaunchShape) {
  constexpr int kTogether = 4;
  const auto [images, filters, output, d] = unpacked(arguments);
  const auto* const from = static_cast<const float*>(images);
  const auto* const factors = static_cast<const float*>(filters);
  auto* const to = static_cast<float*>(output);
  for (int n = 0; n < d.n; ++n) {
    for (int first = 0; first < d.k; first += kTogether) {
      const int last = std::min(d.k, first + kTogether);
      float* const planes = to + index_of<false>(d.k, d.out_h, d.out_w, n, first, 0, 0);
      std::fill_n(planes, size(last - first) * size(d.out_h) * size(d.out_w), 0.0f);
      for (int c = 0; c < d.c; ++c) {
        for (int k = first; k < last; ++k) {
          for (int r = 0; r < d.r; ++r) {
            for (int s = 0; s < d.s; ++s) {
              const float factor = factors[index_of<false>(d.c, d.r, d.s, k, c, r, s)];
              const int top = r * d.dilation_h - d.pad_h, left = s * d.dilation_w - d.pad_w;
              const Inside rows = inside_of(d.out_h, d.stride_h, top, d.h);
              const Inside columns = inside_of(d.out_w, d.stride_w, left, d.w);
              if (columns.first == columns.last) continue;
              for (int p = rows.first; p < rows.last; ++p) {
                const float* const row = from + index_of<false>(d.c,
                                                                d.h,
                                                                d.w,
                                                                n,
                                                                c,
                                                                p * d.stride_h + top,
                                                                columns.first * d.stride_w + left);
                float* const sums =
                    to + index_of<false>(d.k, d.out_h, d.out_w, n, k, p, columns.first);
                const std::size_t count = size(columns.last - columns.first);
                if (d.stride_w == 1) {
                  for (std::size_t i = 0; i < count; ++i) sums[i] += factor * row[i];
                } else {
                  for (std::size_t i = 0; i < count; ++i)
                    sums[i] += factor * row[i * size(d.stride_w)];
                }
              }
            }
          }
        }
      }
    }
  }
}

const KernelDescription naive_kernel{"launchgap_convolution_naive",
                                     kParameters,
                                     naive<ElementType::fp32, false>};
const KernelDescription tiles_kernel{"launchgap_convolution_tiles", kParameters, blocked};
const KernelDescription mma_kernel{"launchgap_convolution_mma",
                                   kParameters,
                                   naive<ElementType::bf16, true>,
                                   80,
                                   80};

constexpr std::array<ConvolutionRung, 3> kRungs = {
    {{"naive",
      &naive_kernel,
      ElementType::fp32,
      "fp32",
      false,
      128,
      0,
      0,
      1,
      1,
      "a thread for each element, from memory",
      0.06},
     {"tiles",
      &tiles_kernel,
      ElementType::fp32,
      "fp32",
      false,
      128,
      64,
      128,
      1,
      1,
      "Kepler: a product whose tiles are made in shared memory; on the host rows of pixels, "
      "channel by "
      "channel",
      0.4},
     {"mma",
      &mma_kernel,
      ElementType::bf16,
      "bf16",
      true,
      128,
      64,
      128,
      32,
      64,
      "Ampere: mma.sync, with copies that run ahead and bring zeros from outside",
      0.5}}};

}  // namespace

std::span<const ConvolutionRung> convolution_rungs() {
  return kRungs;
}

const ConvolutionRung* find_convolution_rung(std::string_view name) {
  const auto found = std::ranges::find(kRungs, name, &ConvolutionRung::name);
  return found == kRungs.end() ? nullptr : &*found;
}

const ConvolutionRung* convolution_rung_of(const KernelDescription& kernel) {
  const auto found = std::ranges::find(kRungs, &kernel, &ConvolutionRung::kernel);
  return found == kRungs.end() ? nullptr : &*found;
}

LaunchShape launch_shape(const ConvolutionRung& rung, const ConvolutionSides& sides) {
  const auto parts = [](unsigned all, unsigned tile) { return (all + tile - 1) / tile; };
  const unsigned pixels = static_cast<unsigned>(sides.n) * static_cast<unsigned>(sides.out_h) *
                          static_cast<unsigned>(sides.out_w);
  const auto filters = static_cast<unsigned>(sides.k);
  const unsigned blocks = rung.filters == 0
                              ? parts(pixels * filters, rung.threads)
                              : parts(pixels, rung.pixels) * parts(filters, rung.filters);
  return {blocks, rung.threads, 0};
}

}  // namespace launchgap::kernels
