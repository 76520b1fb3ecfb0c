// How well the free part of an allocator's memory could be used. No figure alone is honest, so they
// stand together (docs/allocation.md says what each hides).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "harness/allocation/block_allocator.h"

namespace launchgap::allocation {

/// Requests for which the unusable index is told, in bytes: 1 MiB to 512 MiB.
inline constexpr std::array<std::uint64_t, 6> kUnusableFor = {std::uint64_t{1} << 20,
                                                              std::uint64_t{2} << 20,
                                                              std::uint64_t{8} << 20,
                                                              std::uint64_t{32} << 20,
                                                              std::uint64_t{128} << 20,
                                                              std::uint64_t{512} << 20};

/// Shares are from 0 to 1, and 0 where there is nothing to share.
struct Fragmentation {
  bool known = true;  // false: of an allocator that does not tell; then only live_bytes is
  Holding holding;
  std::uint64_t live_bytes = 0;  // of blocks in use, as they were asked for
  /// 1 - live / granted: what rounding and unsplit blocks cost.
  double internal_waste = 0;
  /// 1 - largest free block / free: TensorFlow's and RMM's figure. Its denominator is
  /// `holding.free`; of little free memory it says nothing.
  double largest_block_index = 0;
  /// The share of the free bytes in blocks smaller than kUnusableFor[i]: what a request of that
  /// size could not use. 1 where nothing is free, as Linux has it.
  std::array<double, kUnusableFor.size()> unusable{};
  /// 1 - live / reserved.
  double reserve_slack = 0;
};

Fragmentation fragmentation_of(const BlockAllocator& allocator, std::uint64_t live_bytes);

/// The memory that an allocator holds, drawn with so many letters: '*' is used, 'x' is wasted by
/// rounding, '_' is free. What has more of a letter's bytes decides. Regions follow one another.
std::string occupancy(const BlockAllocator& allocator, std::size_t columns = 100);

}  // namespace launchgap::allocation
