#include "tests/ladder/rungs.h"

#include <stdexcept>

#include <fmt/format.h>

extern "C" {
void launchgap_matmul_naive(const float*, const float*, float*, int, int, int);
void launchgap_matmul_tiles(const float*, const float*, float*, int, int, int);
void launchgap_matmul_wmma(const std::uint16_t*,
                           const std::uint16_t*,
                           std::uint16_t*,
                           int,
                           int,
                           int);
void launchgap_matmul_mma(const std::uint16_t*,
                          const std::uint16_t*,
                          std::uint16_t*,
                          int,
                          int,
                          int);
void launchgap_matmul_wgmma(const launchgap::kernels::emulated::TensorMap&,
                            const launchgap::kernels::emulated::TensorMap&,
                            std::uint16_t*,
                            int,
                            int,
                            int);
void launchgap_matmul_tcgen05(const launchgap::kernels::emulated::TensorMap&,
                              const launchgap::kernels::emulated::TensorMap&,
                              std::uint16_t*,
                              int,
                              int,
                              int);
void launchgap_convolution_naive(const float*,
                                 const float*,
                                 float*,
                                 launchgap::kernels::ConvolutionSides);
void launchgap_convolution_tiles(const float*,
                                 const float*,
                                 float*,
                                 launchgap::kernels::ConvolutionSides);
void launchgap_convolution_mma(const std::uint16_t*,
                               const std::uint16_t*,
                               std::uint16_t*,
                               launchgap::kernels::ConvolutionSides);
}

namespace launchgap::kernels {
namespace {

/// Memory whose end is that of an operand, aligned as a GPU's.
struct Aligned {
  explicit Aligned(std::size_t size) : bytes(size), storage(size + 256) {
    const auto begin = reinterpret_cast<std::uintptr_t>(storage.data());
    address = storage.data() + (256 - begin % 256);
  }
  std::size_t bytes;
  std::vector<std::byte> storage;
  std::byte* address;
};

Aligned integers(std::size_t count, ElementType type, std::uint64_t seed, std::uint64_t step) {
  Aligned made(count * element_bytes(type));
  for (std::size_t i = 0; i < count; ++i)
    store_element(
        made.address, i, type, sparse_element(seed, i, Distribution::small_integer, type, step));
  return made;
}

std::size_t size(int side) {
  return static_cast<std::size_t>(side);
}

/// Elements of both operands and of the result.
struct Counts {
  std::size_t first, second, result;
};
Counts counts_of(const EmulatedRung& rung, const Problem& of) {
  if (rung.matmul)
    return {size(of.m) * size(of.k), size(of.k) * size(of.n), size(of.m) * size(of.n)};
  const ConvolutionSides& d = of.sides;
  return {size(d.n) * size(d.c) * size(d.h) * size(d.w),
          size(d.k) * size(d.c) * size(d.r) * size(d.s),
          size(d.n) * size(d.k) * size(d.out_h) * size(d.out_w)};
}

using Elements = std::vector<long long>;

Elements product(const Elements& a, const Elements& b, const Problem& of) {
  const std::size_t m = size(of.m), n = size(of.n), k = size(of.k);
  Elements c(m * n);
  for (std::size_t row = 0; row < m; ++row) {
    for (std::size_t i = 0; i < k; ++i) {
      for (std::size_t column = 0; column < n; ++column)
        c[row * n + column] += a[row * k + i] * b[i * n + column];
    }
  }
  return c;
}

/// Each element of the images goes to each pixel that sees it: the other way round than the rungs.
Elements convolution(const Elements& images,
                     const Elements& filters,
                     const ConvolutionSides& d,
                     bool channels_last) {
  const auto at = [channels_last](int channels, int h, int w, int i, int c, int y, int x) {
    return size(channels_last ? ((i * h + y) * w + x) * channels + c
                              : ((i * channels + c) * h + y) * w + x);
  };
  Elements output(size(d.n) * size(d.k) * size(d.out_h) * size(d.out_w));
  for (int n = 0; n < d.n; ++n) {
    for (int c = 0; c < d.c; ++c) {
      for (int y = 0; y < d.h; ++y) {
        for (int x = 0; x < d.w; ++x) {
          const long long element = images[at(d.c, d.h, d.w, n, c, y, x)];
          for (int r = 0; r < d.r; ++r) {
            for (int s = 0; s < d.s; ++s) {
              const int down = y + d.pad_h - r * d.dilation_h;
              const int right = x + d.pad_w - s * d.dilation_w;
              if (down < 0 || right < 0 || down % d.stride_h != 0 || right % d.stride_w != 0)
                continue;
              const int p = down / d.stride_h, q = right / d.stride_w;
              if (p >= d.out_h || q >= d.out_w) continue;
              for (int k = 0; k < d.k; ++k)
                output[at(d.k, d.out_h, d.out_w, n, k, p, q)] +=
                    element * filters[at(d.c, d.r, d.s, k, c, r, s)];
            }
          }
        }
      }
    }
  }
  return output;
}

Problem product_of(int m, int n, int k) {
  return {m, n, k, {}};
}

/// With out_h and out_w computed.
Problem convolution_of(ConvolutionSides d) {
  d.out_h = (d.h + 2 * d.pad_h - (d.r - 1) * d.dilation_h - 1) / d.stride_h + 1;
  d.out_w = (d.w + 2 * d.pad_w - (d.s - 1) * d.dilation_w - 1) / d.stride_w + 1;
  return {0, 0, 0, d};
}

EmulatedRung matmul_rung(std::string_view name, std::vector<Problem> problems, RungKernel kernel) {
  return {fmt::format("matmul_{}", name),
          std::move(problems),
          std::move(kernel),
          find_rung(name),
          nullptr};
}

EmulatedRung convolution_rung(std::string_view name,
                              const std::vector<ConvolutionSides>& sides,
                              RungKernel kernel) {
  std::vector<Problem> problems;
  for (const ConvolutionSides& one : sides) problems.push_back(convolution_of(one));
  return {fmt::format("convolution_{}", name),
          std::move(problems),
          std::move(kernel),
          nullptr,
          find_convolution_rung(name)};
}

/// Operands of small integers, and memory for the result.
struct Trial {
  Trial(const EmulatedRung& of, const Problem& what, std::uint64_t seed)
      : rung(of),
        problem(what),
        type(of.matmul ? of.matmul->type : of.convolution->type),
        counts(counts_of(of, what)),
        // Sums of bfloat16 are exact up to 256: of the first operand each third element is not 0.
        a(integers(counts.first, type, 2 * seed, type == ElementType::bf16 ? 3 : 1)),
        b(integers(counts.second, type, 2 * seed + 1, 1)),
        c(counts.result * element_bytes(type)) {
    std::fill(c.storage.begin(), c.storage.end(), std::byte{unwritten_byte(type)});
  }

  LaunchShape shape() const {
    return rung.matmul ? launch_shape(*rung.matmul, problem.m, problem.n)
                       : launch_shape(*rung.convolution, problem.sides);
  }
  /// The first element that differs.
  std::string wrong() const {
    const Elements first = elements(a, counts.first), second = elements(b, counts.second);
    const Elements right =
        rung.matmul ? product(first, second, problem)
                    : convolution(first, second, problem.sides, rung.convolution->channels_last);
    for (std::size_t i = 0; i < right.size(); ++i) {
      const double is = load_element(c.address, i, type);
      if (is != static_cast<double>(right[i]))
        return fmt::format(
            "element {} of {} is {}, and {} is right", i, right.size(), is, right[i]);
    }
    return "";
  }
  Elements elements(const Aligned& of, std::size_t count) const {
    Elements all(count);
    for (std::size_t i = 0; i < count; ++i)
      all[i] = static_cast<long long>(load_element(of.address, i, type));
    return all;
  }

  const EmulatedRung& rung;
  const Problem& problem;
  ElementType type;
  Counts counts;
  Aligned a, b, c;
};

}  // namespace

std::string Problem::text() const {
  if (m > 0) return fmt::format("{} x {} x {}", m, n, k);
  return fmt::format("{}x{}x{}x{}-{}x{}x{}, strides {} {}, paddings {} {}, dilations {} {}",
                     sides.n,
                     sides.c,
                     sides.h,
                     sides.w,
                     sides.k,
                     sides.r,
                     sides.s,
                     sides.stride_h,
                     sides.stride_w,
                     sides.pad_h,
                     sides.pad_w,
                     sides.dilation_h,
                     sides.dilation_w);
}

const std::vector<EmulatedRung>& emulated_rungs() {
  // Each of n, c, h, w; k, r, s; strides, paddings, dilations.
  static const std::vector<ConvolutionSides> kAnySides = {
      {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1},
      {2, 3, 7, 5, 4, 3, 3, 1, 1, 1, 1, 1, 1},
      {1, 5, 11, 9, 70, 5, 2, 2, 3, 2, 1, 1, 1},
      {3, 2, 8, 9, 3, 2, 3, 1, 1, 3, 2, 2, 3},
      {1, 17, 12, 12, 65, 1, 1, 1, 1, 0, 0, 1, 1}};
  static const std::vector<ConvolutionSides> kChannelsOf32 = {
      {1, 32, 12, 13, 128, 1, 1, 1, 1, 0, 0, 1, 1},
      {2, 64, 6, 5, 64, 3, 3, 1, 1, 1, 1, 1, 1},
      {1, 32, 13, 11, 128, 5, 2, 2, 3, 2, 1, 1, 1},
      {1, 96, 12, 16, 64, 2, 3, 1, 1, 1, 2, 2, 3},
      {3, 32, 3, 3, 64, 3, 3, 1, 1, 1, 1, 1, 1}};
  static const std::vector<EmulatedRung> all = {
      matmul_rung("naive",
                  {product_of(1, 1, 1),
                   product_of(7, 13, 5),
                   product_of(64, 64, 64),
                   product_of(33, 65, 17),
                   product_of(128, 3, 50)},
                  kernel_of(&launchgap_matmul_naive)),
      matmul_rung("tiles",
                  {product_of(1, 1, 1),
                   product_of(7, 13, 5),
                   product_of(128, 128, 64),
                   product_of(129, 260, 33),
                   product_of(100, 70, 16)},
                  kernel_of(&launchgap_matmul_tiles)),
      matmul_rung("wmma",
                  {product_of(64, 64, 32),
                   product_of(64, 64, 96),
                   product_of(128, 64, 64),
                   product_of(64, 192, 32),
                   product_of(128, 128, 64)},
                  kernel_of(&launchgap_matmul_wmma)),
      matmul_rung("mma",
                  {product_of(128, 128, 32),
                   product_of(128, 128, 64),
                   product_of(128, 128, 160),
                   product_of(256, 256, 96),
                   product_of(1280, 256, 32)},
                  kernel_of(&launchgap_matmul_mma)),
      matmul_rung("wgmma",
                  {product_of(128, 256, 64),
                   product_of(256, 256, 64),
                   product_of(128, 256, 320),
                   product_of(128, 512, 128),
                   product_of(128, 256, 704)},
                  kernel_of(&launchgap_matmul_wgmma)),
      matmul_rung("tcgen05",
                  {product_of(128, 256, 64),
                   product_of(256, 256, 64),
                   product_of(128, 256, 320),
                   product_of(128, 512, 128),
                   product_of(128, 256, 704)},
                  kernel_of(&launchgap_matmul_tcgen05)),
      convolution_rung("naive", kAnySides, kernel_of(&launchgap_convolution_naive)),
      convolution_rung("tiles", kAnySides, kernel_of(&launchgap_convolution_tiles)),
      convolution_rung("mma", kChannelsOf32, kernel_of(&launchgap_convolution_mma))};
  return all;
}

const EmulatedRung& emulated_rung(const std::string& name) {
  for (const EmulatedRung& one : emulated_rungs()) {
    if (one.name == name) return one;
  }
  throw std::out_of_range(name);
}

std::string wrong(const EmulatedRung& rung,
                  const RungKernel& kernel,
                  const Problem& problem,
                  std::uint64_t seed,
                  emulated::BankConflicts* conflicts) {
  const Trial trial(rung, problem, seed);
  const Aligned &a = trial.a, &b = trial.b, &c = trial.c;
  const std::vector<emulated::Operand> operands = {
      {a.address, a.bytes}, {b.address, b.bytes}, {c.address, c.bytes}};
  try {
    const emulated::BankConflicts found = emulated::run(
        trial.shape(), seed, operands, [&] { kernel(a.address, b.address, c.address, problem); });
    if (conflicts) *conflicts = found;
  } catch (const emulated::Fault& fault) {
    return fault.what();
  }
  return trial.wrong();
}

std::string wrong_on_host(const EmulatedRung& rung, const Problem& problem, std::uint64_t seed) {
  const Trial trial(rung, problem, seed);
  const void *a = trial.a.address, *b = trial.b.address;
  void* c = trial.c.address;
  int m = problem.m, n = problem.n, k = problem.k;
  ConvolutionSides sides = problem.sides;
  // Where a kernel takes tensor maps, these begin with the address.
  void* of_product[] = {&a, &b, &c, &m, &n, &k};
  void* of_convolution[] = {&a, &b, &c, &sides};
  if (rung.matmul) {
    rung.matmul->kernel->host(of_product, trial.shape());
  } else {
    rung.convolution->kernel->host(of_convolution, trial.shape());
  }
  return trial.wrong();
}

}  // namespace launchgap::kernels
