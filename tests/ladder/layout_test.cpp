// Which lane has which element, from a second description than the one that the emulation was
// written from: CuTe's layouts, which CUTLASS compiles its kernels with.
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "kernels/element.h"
#include "kernels/ladder/instructions_blackwell.h"

namespace launchgap::kernels {
namespace {

/// A mode of a layout of CuTe: a shape with strides. A number is taken apart from the first on.
struct Mode {
  unsigned shape, stride;
};
unsigned offset(unsigned index, std::span<const Mode> modes) {
  unsigned sum = 0;
  for (const Mode& mode : modes) {
    sum += index % mode.shape * mode.stride;
    index /= mode.shape;
  }
  return sum;
}

// SM80_16x8x16 of cute/atom/mma_traits_sm80.hpp: of a lane's i-th element, the place in a matrix
// whose columns (m or n) are side by side: m + 16 k, n + 8 k, m + 16 n.
constexpr Mode kLanesOfA[] = {{4, 32}, {8, 1}}, kValuesOfA[] = {{2, 16}, {2, 8}, {2, 128}};
constexpr Mode kLanesOfB[] = {{4, 16}, {8, 1}}, kValuesOfB[] = {{2, 8}, {2, 64}};
constexpr Mode kLanesOfC[] = {{4, 32}, {8, 1}}, kValuesOfC[] = {{2, 16}, {2, 8}};

/// What a warp computes of one A (m, k) and one B (k, n) that are 1, by CuTe's layouts: where C is
/// not 0.
std::vector<unsigned> where_not_zero(unsigned of_a, unsigned of_b) {
  std::vector<unsigned> found;
  emulated::run({1, 32}, 1, {}, [&] {
    const unsigned lane = emulated::thread_index();
    unsigned a[4] = {}, b[2] = {};
    float sums[4] = {};
    constexpr unsigned kOne = 0x3F80;
    for (unsigned i = 0; i < 8; ++i) {
      if (offset(lane, kLanesOfA) + offset(i, kValuesOfA) == of_a) a[i / 2] |= kOne << i % 2 * 16;
    }
    for (unsigned i = 0; i < 4; ++i) {
      if (offset(lane, kLanesOfB) + offset(i, kValuesOfB) == of_b) b[i / 2] |= kOne << i % 2 * 16;
    }
    emulated::multiply_bfloats(sums, a, b, emulated::Place::current());
    for (unsigned i = 0; i < 4; ++i) {
      if (sums[i] != 0) found.push_back(offset(lane, kLanesOfC) + offset(i, kValuesOfC));
    }
  });
  return found;
}

TEST(MmaLayout, IsThatOfCute) {
  for (unsigned m = 0; m < 16; ++m) {
    for (unsigned n = 0; n < 8; ++n) {
      for (const unsigned k : {0u, 1u, 2u, 7u, 8u, 15u})
        ASSERT_THAT(where_not_zero(m + 16 * k, n + 8 * k), testing::ElementsAre(m + 16 * n));
      ASSERT_THAT(where_not_zero(m + 16 * 3, n + 8 * 4), testing::IsEmpty()) << "another k";
    }
  }
}

// ldmatrix gives what mma.sync takes: a matrix of 16 x 16 by rows is A.
TEST(MmaLayout, OfAIsWhatLdmatrixReads) {
  emulated::run({1, 32}, 1, {}, [] {
    using Tile = std::array<std::uint16_t, 256>;
    Tile& tile = emulated::shared_variable<Tile>();
    const unsigned lane = emulated::thread_index();
    const emulated::Place here = emulated::Place::current();
    for (unsigned i = lane; i < tile.size(); i += 32) {
      emulated::write_shared(&tile[i], sizeof(std::uint16_t), here);
      tile[i] = static_cast<std::uint16_t>(i);
    }
    emulated::barrier(here);
    unsigned registers[4];
    emulated::load_matrices(registers, &tile[lane % 16 * 16 + lane / 16 * 8], false, here);
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned column_major = offset(lane, kLanesOfA) + offset(i, kValuesOfA);
      const unsigned expected = column_major % 16 * 16 + column_major / 16;
      EXPECT_EQ(registers[i / 2] >> i % 2 * 16 & 0xFFFF, expected) << lane << " " << i;
    }
  });
}

// wgmma's operands in shared memory, by CuTe's canonical layouts
// (cute/atom/mma_traits_sm90_gmma.hpp) in units of 16 bytes, before the swizzle: along the depth
// ((8, m), 2) : ((8, SBO), 1), along n
// ((8, n), (8, k)) : ((1, LBO), (8, SBO)).
unsigned unit_along_depth(unsigned row, unsigned k, unsigned stride) {
  constexpr Mode kOfK[] = {{2, 1}};
  const Mode of_row[] = {{8, 8}, {16, stride / 16}};
  return offset(row, of_row) + offset(k / 8, kOfK);
}
unsigned unit_along_columns(unsigned k, unsigned column, unsigned leading, unsigned stride) {
  const Mode of_column[] = {{8, 1}, {4, leading / 16}}, of_k[] = {{8, 8}, {2, stride / 16}};
  return offset(column / 8, of_column) + offset(k, of_k);
}
/// Swizzle<3, 4, 3>.
unsigned swizzled_by_cute(unsigned bytes) {
  return bytes ^ (bytes & 7u << 7) >> 3;
}

TEST(WgmmaOperands, LieWhereCuteHasThem) {
  struct Shared {
    std::uint16_t a[64 * 64], b[4 * 64 * 64];
  };
  constexpr unsigned kStride = 1024, kLeading = 8192;
  const auto placed = [](std::uint16_t* operand, unsigned unit, unsigned within) {
    return operand + swizzled_by_cute(16 * unit + 2 * within) / 2;
  };
  for (const unsigned k : {0u, 1u, 7u, 8u, 15u}) {
    for (const auto& at : {std::pair(0u, 0u),
                           {1u, 7u},
                           {8u, 8u},
                           {37u, 63u},
                           {63u, 64u},
                           {15u, 200u},
                           {48u, 255u}}) {
      const unsigned row = at.first, column = at.second;
      std::vector<unsigned> found;  // of C, row * 256 + column
      emulated::run({1, 128}, 1, {}, [&] {
        Shared& shared = emulated::shared_variable<Shared>();
        const emulated::Place here = emulated::Place::current();
        const unsigned thread = emulated::thread_index();
        if (thread == 0) {
          emulated::write_shared(&shared, sizeof shared, here);
          std::memset(&shared, 0, sizeof shared);
          *placed(shared.a, unit_along_depth(row, k, kStride), k % 8) = 0x3F80;
          *placed(shared.b, unit_along_columns(k, column, kLeading, kStride), column % 8) = 0x3F80;
        }
        emulated::barrier(here);
        float sums[128] = {};
        emulated::fence_group(here);
        emulated::multiply_in_group(
            sums, 256, operand(shared.a, 16, kStride), operand(shared.b, kLeading, kStride), here);
        emulated::commit_group(here);
        emulated::wait_for_group(0, here);
        // CLayout_64x256: ((4, 8, 4), (2, 2, 32)) : ((128, 1, 16), (64, 8, 512)), rows first.
        constexpr Mode kThreads[] = {{4, 128}, {8, 1}, {4, 16}},
                       kValues[] = {{2, 64}, {2, 8}, {32, 512}};
        for (unsigned i = 0; i < 128; ++i) {
          const unsigned place = offset(thread, kThreads) + offset(i, kValues);
          if (sums[i] != 0) found.push_back(place % 64 * 256 + place / 64);
        }
      });
      ASSERT_THAT(found, testing::ElementsAre(row * 256 + column)) << k;
    }
  }
}

// --- tcgen05, by cute/arch/mma_sm100_desc.hpp ---

/// UMMA::SmemDescriptor, for SWIZZLE_128B.
unsigned long long descriptor_by_cute(unsigned start, unsigned leading, unsigned stride) {
  struct {
    std::uint64_t start_address : 14, : 2, leading_byte_offset : 14, : 2, stride_byte_offset : 14,
        version : 2, : 1, base_offset : 3, lbo_mode : 1, : 8, layout_type : 3;
  } fields{};
  static_assert(sizeof fields == 8);
  fields.start_address = start >> 4 & 0x3FFF;
  fields.leading_byte_offset = leading >> 4 & 0x3FFF;
  fields.stride_byte_offset = stride >> 4 & 0x3FFF;
  fields.version = 1;
  fields.layout_type = 2;
  return std::bit_cast<unsigned long long>(fields);
}
/// UMMA::InstrDescriptor: sums in F32, of BF16; A along K, B along MN.
unsigned kind_by_cute(unsigned m, unsigned n) {
  struct {
    std::uint32_t sparse_id2 : 2, sparse_flag : 1, saturate : 1, c_format : 2, : 1, a_format : 3,
        b_format : 3, a_negate : 1, b_negate : 1, a_major : 1, b_major : 1, n_dim : 6, : 1,
        m_dim : 5, : 1, max_shift : 2;
  } fields{};
  static_assert(sizeof fields == 4);
  fields.c_format = 1;
  fields.a_format = 1;
  fields.b_format = 1;
  fields.b_major = 1;
  fields.n_dim = n >> 3 & 63;
  fields.m_dim = m >> 4 & 31;
  return std::bit_cast<unsigned>(fields);
}

TEST(Tcgen05Descriptors, AreThoseOfCute) {
  EXPECT_EQ((bfloat_products<128, 256>()), kind_by_cute(128, 256));
  EXPECT_EQ((bfloat_products<128, 16>()), kind_by_cute(128, 16));
  emulated::run({1, 32}, 1, {}, [&] {
    struct Shared {
      std::uint16_t elements[4096];
    };
    Shared& shared = emulated::shared_variable<Shared>();
    const std::uint16_t* const at = shared.elements + 2048 + 16;
    EXPECT_EQ(operand_of_tcgen05(at, 8192, 1024),
              descriptor_by_cute(emulated::shared_offset(at), 8192, 1024));
  });
}

/// Of sums ((128, 256)) : ((65536, 1)) from the first address on: a lane for each row, a column for
/// each column. The operands lie as those of wgmma do.
TEST(Tcgen05Operands, LieWhereCuteHasThem) {
  struct Shared {
    std::uint16_t a[128 * 64], b[4 * 64 * 64];
    Mbarrier done;
    SharedMatrix<unsigned, 1, 1> columns;
  };
  constexpr unsigned kStride = 1024, kLeading = 8192;
  const auto placed = [](std::uint16_t* operand, unsigned unit, unsigned within) {
    return operand + swizzled_by_cute(16 * unit + 2 * within) / 2;
  };
  for (const unsigned k : {0u, 1u, 7u, 8u, 15u}) {
    for (const auto& at : {std::pair(0u, 0u), {8u, 8u}, {37u, 63u}, {64u, 64u}, {127u, 255u}}) {
      const unsigned row = at.first, column = at.second;
      std::vector<unsigned> found;  // of C, row * 256 + column
      emulated::run({1, 128, sizeof(Shared)}, 1, {}, [&] {
        Shared& shared = launched_memory<Shared>();
        const emulated::Place here = emulated::Place::current();
        const unsigned thread = emulated::thread_index();
        if (thread == 0) {
          emulated::write_shared(shared.a, sizeof shared.a + sizeof shared.b, here);
          std::memset(shared.a, 0, sizeof shared.a + sizeof shared.b);
          *placed(shared.a, unit_along_depth(row, k, kStride), k % 8) = 0x3F80;
          *placed(shared.b, unit_along_columns(k, column, kLeading, kStride), column % 8) = 0x3F80;
          initialise(shared.done, 1);
          fence_mbarriers();
        }
        wait_for_warp();
        if (thread / kLanes == 0) take_columns<256>(*shared.columns.address(0, 0));
        wait_for_block();
        fence_after_barrier();
        const unsigned sums = shared.columns.get(0, 0);
        if (thread == 0) {
          multiply_into_columns(sums,
                                operand_of_tcgen05(shared.a, 16, kStride),
                                operand_of_tcgen05(shared.b, kLeading, kStride),
                                bfloat_products<128, 256>(),
                                false);
          arrive_when_done(shared.done);
        }
        wait_for_warp();
        wait_for(shared.done, 0);
        fence_after_barrier();
        for (unsigned i = 0; i < 256; i += 32) {
          float own[32];
          load_columns(own, sums + (thread / 32 * 32 << kLaneOfAddress) + i);
          wait_for_columns(own);
          for (unsigned s = 0; s < 32; ++s) {
            if (own[s] != 0) found.push_back(thread * 256 + i + s);
          }
        }
        fence_before_barrier();
        wait_for_block();
        if (thread / kLanes == 0) give_columns<256>(sums);
      });
      ASSERT_THAT(found, testing::ElementsAre(row * 256 + column)) << k;
    }
  }
}

}  // namespace
}  // namespace launchgap::kernels
