// C = A B in the idiom of Blackwell: tcgen05, a thread that multiplies, and sums that no thread
// has.
//
// A block of four warps computes 128 x 256 elements of C. One thread asks for boxes of A and B by
// 64 of the depth, into one of four stages (TMA); another one has the tensor cores multiply what
// came. The sums are in tensor memory, 256 of its 512 columns, a lane for each row of C. So
// products need no registers, and no warp waits for another one; at the end each warp takes its 32
// rows from there through registers to C.
//
// Each stage has two mbarriers. `full` is over when the bytes of the stage are there; `empty` when
// the products that read it are done. The n-th use of a stage is phase n of both. `done` is over
// when all products are.
//
// Boxes lie in shared memory as in wgmma.cu: rows of 128 bytes, whose pieces of 16 bytes are
// exchanged by the row's number; of A rows along the depth, of B, as in memory, along n.
//
// m is a multiple of 128, n of 256, k of 64, and all addresses of 16 bytes. Parameters: the tensor
// maps of A (m x k, boxes of 128 rows) and of B (k x n, boxes of 64 rows), Bits16* c (m x n), int
// m, int n, int k; bfloat16, rows without gaps. A grid of m / 128 n / 256 blocks, and
// sizeof(Shared) bytes of shared memory.
#include "../ladder/instructions_blackwell.h"

namespace launchgap::kernels {
namespace {

constexpr unsigned kHeight = 128, kWidth = 256, kDepth = 64, kStages = 4, kThreads = 128;
constexpr unsigned kRowBytes = 128, kRowsAtOnce = 8 * kRowBytes;  // of a box
constexpr unsigned kStep = 16;                                    // of the depth, of one product
constexpr unsigned kBringing = 0, kMultiplying = 1;               // warps, a thread of each
constexpr unsigned kAtOnce = 32;                                  // columns to registers

struct Stage {
  Bits16 a[kHeight * kDepth];
  Bits16 b[kWidth / 64][kDepth * 64];
};
struct Shared {
  Stage stages[kStages];
  Mbarrier full[kStages], empty[kStages], done;
  SharedMatrix<unsigned, 1, 1> columns;  // where those of the sums are
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

/// Has one stage after the other multiplied, as they become full.
LAUNCHGAP_DEVICE void multiply(Shared& shared, unsigned sums, unsigned steps) {
  // Of A the next 8 rows 1024 bytes further; of B the next 8 of the depth, and the next 64 columns
  // a box further.
  Stage& first = shared.stages[0];
  const auto of_a = operand_of_tcgen05(first.a, 16, kRowsAtOnce);
  const auto of_b = operand_of_tcgen05(first.b[0], kDepth * kRowBytes, kRowsAtOnce);
  for (unsigned step = 0; step < steps; ++step) {
    const unsigned place = step % kStages, use = step / kStages;
    wait_for(shared.full[place], use % 2);
    fence_after_barrier();
    const unsigned stage = place * sizeof(Stage);
#pragma unroll
    for (unsigned i = 0; i < kDepth; i += kStep) {
      // The depth is along rows of A, and across those of B.
      const auto a = moved(of_a, stage + 2 * i), b = moved(of_b, stage + kRowBytes * i);
      multiply_into_columns(sums, a, b, bfloat_products<kHeight, kWidth>(), step + i > 0);
    }
    arrive_when_done(shared.empty[place]);
  }
  arrive_when_done(shared.done);
}

}  // namespace

extern "C" __global__ LAUNCHGAP_THREADS(kThreads) void launchgap_matmul_tcgen05(
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
  const unsigned thread = block_thread(), warp = thread / kLanes, lane = thread % kLanes;
  if (thread == 0) {
    for (unsigned i = 0; i < kStages; ++i) {
      initialise(shared.full[i], 1);
      initialise(shared.empty[i], 1);
    }
    initialise(shared.done, 1);
    fence_mbarriers();
  }
  wait_for_warp();
  if (warp == 0) take_columns<kWidth>(*shared.columns.address(0, 0));
  fence_before_barrier();
  wait_for_block();
  fence_after_barrier();
  const unsigned sums = shared.columns.get(0, 0);

  if (warp == kBringing && is_elected()) bring(shared, a, b, top, left, steps);
  if (warp == kMultiplying && is_elected()) multiply(shared, sums, steps);
  wait_for_warp();
  wait_for(shared.done, 0);
  fence_after_barrier();

  const unsigned row = top + warp * kLanes + lane;
  for (unsigned i = 0; i < kWidth; i += kAtOnce) {
    float own[kAtOnce];
    load_columns(own, sums + (warp * kLanes << kLaneOfAddress) + i);
    wait_for_columns(own);
#pragma unroll
    for (unsigned s = 0; s < kAtOnce; s += kEight) {
      const float* const v = own + s;
      at(reinterpret_cast<Eight*>(c),
         (row * width + left + i + s) / kEight) = {{to_bfloats(v[0], v[1]),
                                                    to_bfloats(v[2], v[3]),
                                                    to_bfloats(v[4], v[5]),
                                                    to_bfloats(v[6], v[7])}};
    }
  }
  fence_before_barrier();
  wait_for_block();
  if (warp == 0) give_columns<kWidth>(sums);
}

}  // namespace launchgap::kernels
