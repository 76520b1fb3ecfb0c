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

}  // namespace

const std::vector<EmulatedRung>& emulated_rungs() {
  static const std::vector<EmulatedRung> all = {
      {find_rung("naive"),
       {{1, 1, 1}, {7, 13, 5}, {64, 64, 64}, {33, 65, 17}, {128, 3, 50}},
       kernel_of(&launchgap_matmul_naive)},
      {find_rung("tiles"),
       {{1, 1, 1}, {7, 13, 5}, {128, 128, 64}, {129, 260, 33}, {100, 70, 16}},
       kernel_of(&launchgap_matmul_tiles)},
      {find_rung("wmma"),
       {{64, 64, 32}, {64, 64, 96}, {128, 64, 64}, {64, 192, 32}, {128, 128, 64}},
       kernel_of(&launchgap_matmul_wmma)},
      {find_rung("mma"),
       {{128, 128, 32}, {128, 128, 64}, {128, 128, 160}, {256, 256, 96}, {1280, 256, 32}},
       kernel_of(&launchgap_matmul_mma)},
      {find_rung("wgmma"),
       {{128, 256, 64}, {256, 256, 64}, {128, 256, 320}, {128, 512, 128}, {128, 256, 704}},
       kernel_of(&launchgap_matmul_wgmma)}};
  return all;
}

const EmulatedRung& emulated_rung(const std::string& name) {
  for (const EmulatedRung& one : emulated_rungs()) {
    if (one.rung->name == name) return one;
  }
  throw std::out_of_range(name);
}

std::string wrong(const Rung& rung,
                  const RungKernel& kernel,
                  Shape shape,
                  std::uint64_t seed,
                  emulated::BankConflicts* conflicts) {
  const auto m = static_cast<std::size_t>(shape.m), n = static_cast<std::size_t>(shape.n);
  const auto k = static_cast<std::size_t>(shape.k);
  // Sums of bfloat16 are exact up to 256: of A each third element is not 0.
  const std::uint64_t step = rung.type == ElementType::bf16 ? 3 : 1;
  const Aligned a = integers(m * k, rung.type, 2 * seed, step);
  const Aligned b = integers(k * n, rung.type, 2 * seed + 1, 1);
  Aligned c(m * n * element_bytes(rung.type));
  std::fill(c.storage.begin(), c.storage.end(), std::byte{unwritten_byte(rung.type)});
  const std::vector<emulated::Operand> operands = {
      {a.address, a.bytes}, {b.address, b.bytes}, {c.address, c.bytes}};
  try {
    const emulated::BankConflicts found =
        emulated::run(launch_shape(rung, shape.m, shape.n), seed, operands, [&] {
          kernel(a.address, b.address, c.address, shape.m, shape.n, shape.k);
        });
    if (conflicts) *conflicts = found;
  } catch (const emulated::Fault& fault) {
    return fault.what();
  }
  for (std::size_t row = 0; row < m; ++row) {
    for (std::size_t column = 0; column < n; ++column) {
      long long sum = 0;
      for (std::size_t i = 0; i < k; ++i)
        sum += static_cast<long long>(load_element(a.address, row * k + i, rung.type)) *
               static_cast<long long>(load_element(b.address, i * n + column, rung.type));
      const double is = load_element(c.address, row * n + column, rung.type);
      if (is != static_cast<double>(sum))
        return fmt::format("C[{}][{}] is {}, and {} is right", row, column, is, sum);
    }
  }
  return "";
}

}  // namespace launchgap::kernels
