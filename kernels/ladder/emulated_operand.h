// An operand of tensor cores in shared memory, as its descriptor says.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ladder/emulated_memory.h"

namespace launchgap::kernels::emulated {

struct OperandInShared {
  std::size_t begin = 0, leading = 0, stride = 0;

  /// Of wgmma (9.7.15.5.1.2.2).
  static OperandInShared of_wgmma(std::uint64_t descriptor, Place place) {
    if (descriptor >> 62 != 1 || (descriptor >> 49 & 7) != 0)
      fail("{}: an operand has no 128-byte swizzle, or another base", text_of(place));
    return OperandInShared(descriptor);
  }
  /// Of tcgen05 (9.7.16.4.1).
  static OperandInShared of_tcgen05(std::uint64_t descriptor, Place place) {
    constexpr std::uint64_t kSwizzled128 = 2, kAlwaysSo = 1;
    if (descriptor >> 61 != kSwizzled128 || (descriptor >> 46 & 7) != kAlwaysSo ||
        (descriptor >> 49 & 0xFFF) != 0)
      fail("{}: an operand is none of tcgen05 with 128-byte swizzle", text_of(place));
    return OperandInShared(descriptor);
  }

  /// Where rows lie along the depth: 8 rows of 128 bytes, and the next 8 a stride further.
  std::size_t along_depth(std::size_t row, std::size_t k) const {
    return swizzled(begin + row / 8 * stride + row % 8 * 128 + 2 * k);
  }
  /// Where they lie along n: 64 columns of 8 rows, the next 8 rows a stride further, and the next
  /// 64 columns a leading dimension.
  std::size_t along_columns(std::size_t k, std::size_t column) const {
    return swizzled(begin + column / 64 * leading + k / 8 * stride + k % 8 * 128 + column % 64 * 2);
  }

 private:
  explicit OperandInShared(std::uint64_t descriptor)
      : begin((descriptor & 0x3FFF) << 4),
        leading((descriptor >> 16 & 0x3FFF) << 4),
        stride((descriptor >> 32 & 0x3FFF) << 4) {}
};

}  // namespace launchgap::kernels::emulated
