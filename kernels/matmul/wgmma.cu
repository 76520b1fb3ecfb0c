// C = A B in the idiom of Hopper: wgmma, TMA, and a warp that does nothing but bring.
//
// A block computes 128 x 256 elements of C. Two groups of four warps multiply, each 64 of the rows;
// their sums fill half of their registers, which a third group leaves to them. Of that one thread
// works: it asks for boxes of A and B by 64 of the depth, into one of four stages, and memory
// hardware brings them (TMA). wgmma reads its operands from there, not from registers.
//
// Each stage has two mbarriers. `full` is over when the bytes of the stage are there; `empty` when
// all eight warps have read it. The n-th use of a stage is phase n of both.
//
// A row of a box has 128 bytes, and its pieces of 16 bytes are exchanged by the row's number, which
// TMA writes and wgmma reads: so 8 rows lie in different banks. B lies as in memory, rows along n:
// 64 columns of it are a box.
//
// m is a multiple of 128, n of 256, k of 64, and all addresses of 16 bytes. Parameters: the tensor
// maps of A (m x k, boxes of 128 rows) and of B (k x n, boxes of 64 rows), Bits16* c (m x n), int
// m, int n, int k; bfloat16, rows without gaps. A grid of m / 128 n / 256 blocks, those of a row of
// C side by side, and sizeof(Shared) bytes of shared memory.
#include "../ladder/instructions_hopper.h"

namespace launchgap::kernels {
namespace {

constexpr unsigned kHeight = 128, kWidth = 256, kDepth = 64, kStages = 4;
constexpr unsigned kGroup = 128, kMultiplying = 2, kThreads = (kMultiplying + 1) * kGroup;
constexpr unsigned kRowBytes = 128, kRowsAtOnce = 8 * kRowBytes;  // of a box
constexpr unsigned kStep = 16;                                    // of the depth, of one wgmma

struct Stage {
  Bits16 a[kHeight * kDepth];
  Bits16 b[kWidth / 64][kDepth * 64];
};
struct Shared {
  Stage stages[kStages];
  Mbarrier full[kStages], empty[kStages];
};

/// Asks for one stage after the other, as they become empty.
LAUNCHGAP_DEVICE void bring(Shared& shared,
                            const TensorMap& a,
                            const TensorMap& b,
                            unsigned top,
                            unsigned left,
                            unsigned steps) {
  for (unsigned step = 0; step < steps; ++step) {
    const unsigned place = step % kStages, use = step / kStages;
    Stage& stage = shared.stages[place];
    Mbarrier& full = shared.full[place];
    if (use > 0) wait_for(shared.empty[place], (use - 1) % 2);
    arrive_expecting(full, sizeof(Stage));
    copy_box(stage.a, a, step * kDepth, top, full);
    for (unsigned i = 0; i < kWidth / 64; ++i)
      copy_box(stage.b[i], b, left + 64 * i, step * kDepth, full);
  }
}

}  // namespace

extern "C" __global__ LAUNCHGAP_THREADS(kThreads) void launchgap_matmul_wgmma(
    LAUNCHGAP_TENSOR_MAP(a),
    LAUNCHGAP_TENSOR_MAP(b),
    Bits16* c,
    int m,
    int n,
    int k) {
  auto& shared = launched_memory<Shared>();
  const unsigned width = static_cast<unsigned>(n), steps = static_cast<unsigned>(k) / kDepth;
  const TilePlace tile =
      place_of_tile(block_index(), static_cast<unsigned>(m) / kHeight, width / kWidth);
  const unsigned top = tile.row * kHeight, left = tile.column * kWidth;
  const unsigned thread = block_thread(), group = thread / kGroup, lane = thread % kLanes;
  if (thread == 0) {
    for (unsigned i = 0; i < kStages; ++i) {
      initialise(shared.full[i], 1);
      initialise(shared.empty[i], kMultiplying * kGroup / kLanes);
    }
    fence_mbarriers();
  }
  wait_for_block();

  if (group == kMultiplying) {
    leave_registers<40>();
    if (thread % kGroup < kLanes && is_elected()) bring(shared, a, b, top, left, steps);
    return;
  }
  take_registers<232>();
  float sums[kWidth / 2] = {};
  for (unsigned step = 0; step < steps; ++step) {
    const unsigned place = step % kStages, use = step / kStages;
    wait_for(shared.full[place], use % 2);
    const Stage& stage = shared.stages[place];
    fence_group();
#pragma unroll
    for (unsigned i = 0; i < kDepth; i += kStep) {
      // Of A 64 rows of this group, and the next 8 rows 1024 bytes further; of B the next 8 of the
      // depth, and the next 64 columns a box further.
      const Bits16* const of_a = stage.a + group * 64 * kDepth + i;
      const Bits16* const of_b = stage.b[0] + i * 64;
      multiply_in_group(
          sums, operand(of_a, 16, kRowsAtOnce), operand(of_b, kDepth * kRowBytes, kRowsAtOnce));
    }
    commit_group();
    // The stage before is read when no more than this one's products are on their way.
    wait_for_group<1>();
    if (step > 0 && lane == 0) arrive(shared.empty[(step - 1) % kStages]);
  }
  wait_for_group<0>();
  settle(sums);

  const unsigned row = top + 64 * group + thread % kGroup / kLanes * 16 + lane / 4;
  auto* const pairs = reinterpret_cast<unsigned*>(c);
#pragma unroll
  for (unsigned i = 0; i < kWidth / 8; ++i) {
    const unsigned column = left + 8 * i + lane % 4 * 2;
    const float* const own = sums + 4 * i;
    at(pairs, (row * width + column) / 2) = to_bfloats(own[0], own[1]);
    at(pairs, ((row + 8) * width + column) / 2) = to_bfloats(own[2], own[3]);
  }
}

}  // namespace launchgap::kernels
