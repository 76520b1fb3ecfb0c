#include "kernels/ladder/emulated_tensor_memory.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <span>

#include "kernels/ladder/emulated_block.h"

namespace launchgap::kernels::emulated {
namespace {

constexpr unsigned kDepth = 16;  // of a product

}  // namespace

unsigned TensorMemory::take(unsigned columns, unsigned random, Place place) {
  if (columns < 32 || columns > kColumns || !std::has_single_bit(columns))
    fail("{}: {} columns are no power of two from 32 to {}", text_of(place), columns, kColumns);
  if (taken_ > 0) fail("{}: a block takes columns that it gave up its right to", text_of(place));
  taken_ = columns;
  first_ = random % (kColumns / columns) * columns;
  values_.assign(std::size_t{kLanes} * kColumns, std::numeric_limits<float>::quiet_NaN());
  products_of_.assign(kColumns, 0);
  return first_;
}

void TensorMemory::give(unsigned address, unsigned columns, Place place) {
  if (address != first_ || columns != taken_)
    fail("{}: what is given back is not what was taken", text_of(place));
  if (!pending_.empty()) fail("{}: products into these columns are not done", text_of(place));
  taken_ = 0;
}

void TensorMemory::check_all_given_back() const {
  if (taken_ > 0) fail("the block ends with {} columns of tensor memory", taken_);
  if (!pending_.empty()) fail("the block ends with products that are not done");
}

void TensorMemory::check_columns(unsigned column, unsigned count, Place place) const {
  if (column < first_ || column + count > first_ + taken_)
    fail("{}: columns {} to {} are not taken", text_of(place), column, column + count - 1);
}

/// Table 42 of 9.7.16.4.2: products of 16 bits.
TensorMemory::Kind TensorMemory::kind_of(unsigned descriptor, Place place) {
  const auto bits = [descriptor](unsigned first, unsigned count) {
    return descriptor >> first & ((1u << count) - 1);
  };
  constexpr unsigned kFp32 = 1, kBf16 = 1;
  const Kind kind{bits(24, 5) * 16, bits(17, 6) * 8, bits(16, 1) == 1};
  const bool zeros = bits(0, 4) == 0 && bits(6, 1) == 0 && bits(13, 3) == 0 && bits(23, 1) == 0 &&
                     bits(29, 3) == 0;
  if (!zeros || bits(4, 2) != kFp32 || bits(7, 3) != kBf16 || bits(10, 3) != kBf16)
    fail("{}: the products are not of bfloat16 with sums in FP32", text_of(place));
  if (kind.rows != kLanes || kind.columns < 16 || kind.columns > 256 || kind.columns % 16 != 0)
    fail("{}: {} x {} sums cannot be", text_of(place), kind.rows, kind.columns);
  return kind;
}

void TensorMemory::ask(unsigned sums,
                       const OperandInShared& a,
                       const OperandInShared& b,
                       unsigned kind,
                       bool add,
                       Place place) {
  const Product product{++asked_for_, sums, kind_of(kind, place), a, b, add};
  check_columns(product.column, product.kind.columns, place);
  std::fill_n(products_of_.begin() + product.column, product.kind.columns, product.number);
  std::vector<std::size_t> read;
  for (unsigned k = 0; k < kDepth; ++k) {
    for (unsigned row = 0; row < product.kind.rows; ++row) read.push_back(a.along_depth(row, k));
    for (unsigned column = 0; column < product.kind.columns; ++column)
      read.push_back(product.place_in_b(k, column));
  }
  current->read_by_product(read, product.number, place);
  pending_.push_back(product);
}

void TensorMemory::compute(unsigned last, const std::byte* shared_memory) {
  for (; !pending_.empty() && pending_.front().number <= last; pending_.pop_front()) {
    const Product& product = pending_.front();
    const unsigned columns = product.kind.columns;
    std::vector<float> right(std::size_t{kDepth} * columns);
    for (unsigned k = 0; k < kDepth; ++k) {
      for (unsigned column = 0; column < columns; ++column)
        right[k * columns + column] = bfloat_at(shared_memory + product.place_in_b(k, column));
    }
    for (unsigned row = 0; row < product.kind.rows; ++row) {
      float* const sums = &values_[std::size_t{row} * kColumns + product.column];
      if (!product.add) std::fill_n(sums, columns, 0.0f);
      for (unsigned k = 0; k < kDepth; ++k) {
        const float left = bfloat_at(shared_memory + product.a.along_depth(row, k));
        for (unsigned column = 0; column < columns; ++column)
          sums[column] += left * right[k * columns + column];
      }
    }
  }
}

std::vector<float> TensorMemory::load(unsigned address,
                                      unsigned count,
                                      unsigned warp,
                                      unsigned lane,
                                      unsigned seen_products,
                                      Place place) const {
  const unsigned column = address & 0xFFFF, first_lane = address >> 16;
  check_columns(column, count, place);
  if (first_lane != warp % 4 * kWarpSize)
    fail("{}: warp {} cannot read lane {}", text_of(place), warp, first_lane);
  for (unsigned i = column; i < column + count; ++i) {
    if (products_of_[i] == 0) fail("{}: column {} has no sums", text_of(place), i);
    if (products_of_[i] > seen_products)
      fail("{}: column {} is read before its products are done", text_of(place), i);
  }
  const auto from = values_.begin() + std::size_t{first_lane + lane} * kColumns + column;
  return {from, from + count};
}

// --- The instructions ---

namespace {

/// All lanes of a warp do this at once, and name the same.
void by_warp(const char* instruction,
             unsigned named,
             Place place,
             const std::function<void()>& execute) {
  current->together(instruction, &named, place, [&](std::span<void* const> all) {
    for (void* const other : all) {
      if (*static_cast<unsigned*>(other) != named)
        fail("{}: the lanes of a warp name different addresses", text_of(place));
    }
    execute();
  });
}

void require_fence(Place place) {
  if (!current->columns_use().fenced)
    fail("{}: no fence of tcgen05 is between a barrier and it", text_of(place));
}

}  // namespace

void take_columns(unsigned* address, unsigned columns, Place place) {
  by_warp("tcgen05.alloc", shared_offset(address), place, [&] {
    current->write(address, sizeof *address, place);
    *address = current->columns().take(columns, current->any_number(), place);
  });
}

void give_columns(unsigned address, unsigned columns, Place place) {
  by_warp("tcgen05.dealloc", address, place, [&] {
    current->check_loads_are_over(place);
    current->columns().give(address, columns, place);
  });
}

void fence_before_barrier() {
  current->columns_use().unfenced_load = false;
}
void fence_after_barrier() {
  current->columns_use().fenced = true;
}

void multiply_into_columns(unsigned sums,
                           std::uint64_t a,
                           std::uint64_t b,
                           unsigned kind,
                           bool add,
                           Place place) {
  require_fence(place);
  current->columns().ask(sums,
                         OperandInShared::of_tcgen05(a, place),
                         OperandInShared::of_tcgen05(b, place),
                         kind,
                         add,
                         place);
}

void arrive_when_done(void* mbarrier, Place place) {
  current->arrive_when_done(mbarrier, place);
}

void wait_for_warp(Place place) {
  const auto join = [](std::span<void* const>) { current->join_lanes(); };
  current->together("bar.warp.sync", nullptr, place, join, /*gathers=*/true);
}

void load_columns(float* to, unsigned count, unsigned address, Place place) {
  require_fence(place);
  TensorMemoryUse& use = current->columns_use();
  const unsigned thread = current->thread();
  std::vector<float> values = current->columns().load(
      address, count, thread / kWarpSize, thread % kWarpSize, current->seen_products(), place);
  std::fill_n(to, count, std::numeric_limits<float>::quiet_NaN());
  use.loading.push_back({to, std::move(values)});
  use.unfenced_load = true;
  use.loaded_at = current->own_time();
  by_warp("tcgen05.ld", address, place, [] {});
}

void wait_for_columns(Place place) {
  TensorMemoryUse& use = current->columns_use();
  for (const TensorMemoryUse::Load& load : use.loading) std::ranges::copy(load.values, load.to);
  use.loading.clear();
  by_warp("tcgen05.wait::ld", 0, place, [] {});
}

}  // namespace launchgap::kernels::emulated
