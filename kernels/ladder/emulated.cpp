#include "kernels/ladder/emulated.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "kernels/element.h"
#include "kernels/ladder/emulated_block.h"
#include "kernels/ladder/emulated_operand.h"

namespace launchgap::kernels::emulated {

BankConflicts run(LaunchShape shape,
                  std::uint64_t seed,
                  std::span<const Operand> operands,
                  const std::function<void()>& kernel) {
  BankConflicts conflicts;
  std::mt19937_64 seeds(seed);
  for (unsigned i = 0; i < shape.blocks; ++i)
    Block(i, shape, seeds(), operands, kernel, conflicts).run();
  return conflicts;
}

unsigned block_index() {
  return current->index();
}
unsigned block_size() {
  return current->size();
}
unsigned thread_index() {
  return current->thread();
}
void barrier(Place place) {
  current->barrier(place);
}
void check_global(const void* address, std::size_t bytes, std::size_t alignment, Place place) {
  current->check_global(address, bytes, alignment, place);
}
void* shared_memory(const void* variable, std::size_t bytes) {
  return current->memory().variable(variable, bytes);
}
void* launched_memory(std::size_t bytes) {
  return current->launched_memory(bytes);
}
void read_shared(const void* address, std::size_t bytes, Place place) {
  current->read(address, bytes, current->thread(), place);
  current->note(address, bytes, place);
}
void write_shared(const void* address, std::size_t bytes, Place place) {
  current->write(address, bytes, place);
  current->note(address, bytes, place);
}
void copy_async(void* shared, const void* global, Place place) {
  current->copy_async(shared, global, place);
}
void commit_copies() {
  current->commit_copies();
}
void wait_for_copies(unsigned groups) {
  current->wait_for_copies(groups);
}

std::uint16_t to_half(float value) {
  return static_cast<std::uint16_t>(Fp16::from(value));
}
unsigned to_bfloats(float first, float second) {
  return Bf16::from(first) | Bf16::from(second) << 16;
}

namespace {

/// What each lane of a warp has brought to one instruction.
template <class Brought>
void together(const char* instruction,
              Brought brought,
              Place place,
              const std::function<void(std::array<Brought*, kWarpSize>&)>& execute) {
  current->together(instruction, &brought, place, [&](std::span<void* const> all) {
    std::array<Brought*, kWarpSize> lanes;
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      lanes[lane] = static_cast<Brought*>(all[lane]);
    execute(lanes);
  });
}

std::uint16_t& half_of(unsigned* registers, unsigned i) {
  return reinterpret_cast<std::uint16_t*>(registers)[i];
}

// --- WMMA ---

constexpr unsigned kSide = 16, kElements = kSide * kSide;
constexpr unsigned kHalvesOfLane = 16, kSumsOfLane = 8;

struct Matrix {
  void* registers;
  const void* memory;
  unsigned pitch;
};

/// A warp has each half twice (a Volta does), and each sum once.
template <class Element>
void check_matrix(const std::array<Matrix*, kWarpSize>& lanes, Place place) {
  for (const Matrix* lane : lanes) {
    if (lane->memory != lanes[0]->memory || lane->pitch != lanes[0]->pitch)
      fail("{}: the lanes of a warp name different matrices", text_of(place));
  }
  if (reinterpret_cast<std::uintptr_t>(lanes[0]->memory) % 32 != 0 ||
      lanes[0]->pitch * sizeof(Element) % 16 != 0)
    fail("{}: a matrix is aligned to 32 bytes, and its rows to 16", text_of(place));
}

std::array<float, kElements> matrix_of(const std::array<const unsigned*, kWarpSize>& lanes) {
  const std::span<const unsigned> order = current->unspecified_order(2 * kElements);
  std::array<float, kElements> elements{};
  for (unsigned i = 0; i < 2 * kElements; ++i) {
    const unsigned* const registers = lanes[i / kHalvesOfLane];
    const float value =
        Fp16::to(reinterpret_cast<const std::uint16_t*>(registers)[i % kHalvesOfLane]);
    elements[order[i] % kElements] = value;
  }
  return elements;
}

}  // namespace

void load_halves(unsigned (&to)[8], const std::uint16_t* from, unsigned pitch, Place place) {
  together<Matrix>("wmma.load", {to, from, pitch}, place, [&](auto& lanes) {
    check_matrix<std::uint16_t>(lanes, place);
    for (std::size_t row = 0; row < kSide; ++row)
      current->read(from + row * pitch, kSide * sizeof(std::uint16_t), current->thread(), place);
    const std::span<const unsigned> order = current->unspecified_order(2 * kElements);
    for (unsigned i = 0; i < 2 * kElements; ++i) {
      const unsigned element = order[i] % kElements;
      half_of(static_cast<unsigned*>(lanes[i / kHalvesOfLane]->registers), i % kHalvesOfLane) =
          from[element / kSide * pitch + element % kSide];
    }
  });
}

void multiply_halves(float (&sums)[8],
                     const unsigned (&a)[8],
                     const unsigned (&b)[8],
                     Place place) {
  struct Product {
    float* sums;
    const unsigned *a, *b;
  };
  together<Product>("wmma.mma", {sums, a, b}, place, [](auto& lanes) {
    std::array<const unsigned*, kWarpSize> of_a{}, of_b{};
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      of_a[lane] = lanes[lane]->a, of_b[lane] = lanes[lane]->b;
    const auto left = matrix_of(of_a), right = matrix_of(of_b);
    const std::span<const unsigned> order = current->unspecified_order(kElements);
    for (unsigned i = 0; i < kElements; ++i) {
      float& sum = lanes[i / kSumsOfLane]->sums[i % kSumsOfLane];
      const unsigned row = order[i] / kSide, column = order[i] % kSide;
      for (unsigned k = 0; k < kSide; ++k) sum += left[row * kSide + k] * right[k * kSide + column];
    }
  });
}

void store_sums(float* to, const float (&sums)[8], unsigned pitch, Place place) {
  together<Matrix>(
      "wmma.store", {const_cast<float*>(&sums[0]), to, pitch}, place, [&](auto& lanes) {
        check_matrix<float>(lanes, place);
        for (std::size_t row = 0; row < kSide; ++row)
          current->write(to + row * pitch, kSide * sizeof(float), place);
        const std::span<const unsigned> order = current->unspecified_order(kElements);
        for (unsigned i = 0; i < kElements; ++i)
          to[order[i] / kSide * pitch + order[i] % kSide] =
              static_cast<const float*>(lanes[i / kSumsOfLane]->registers)[i % kSumsOfLane];
      });
}

// --- ldmatrix and mma.sync ---

void load_matrices(unsigned (&to)[4], const std::uint16_t* row, bool transposed, Place place) {
  struct Row {
    unsigned* to;
    const std::uint16_t* row;
  };
  together<Row>("ldmatrix", {to, row}, place, [&](auto& lanes) {
    std::array<const void*, kWarpSize> rows{};
    for (unsigned lane = 0; lane < kWarpSize; ++lane) rows[lane] = lanes[lane]->row;
    current->read_rows(rows, place);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      for (unsigned matrix = 0; matrix < 4; ++matrix) {
        for (unsigned i = 0; i < 2; ++i) {
          const unsigned at_row = lane / 4, at_column = lane % 4 * 2 + i;
          half_of(&lanes[lane]->to[matrix], i) = transposed
                                                     ? lanes[matrix * 8 + at_column]->row[at_row]
                                                     : lanes[matrix * 8 + at_row]->row[at_column];
        }
      }
    }
  });
}

void multiply_bfloats(float (&sums)[4],
                      const unsigned (&a)[4],
                      const unsigned (&b)[2],
                      Place place) {
  struct Product {
    float* sums;
    const unsigned *a, *b;
  };
  together<Product>("mma.sync", {sums, a, b}, place, [](auto& lanes) {
    constexpr unsigned kRows = 16, kDepth = 16, kColumns = 8;
    float left[kRows][kDepth], right[kDepth][kColumns];
    const auto value = [](unsigned pair, unsigned i) { return Bf16::to(pair >> 16 * i & 0xFFFF); };
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const unsigned g = lane / 4, t = lane % 4;
      for (unsigned i = 0; i < 2; ++i) {
        for (unsigned r = 0; r < 4; ++r)
          left[g + r % 2 * 8][2 * t + r / 2 * 8 + i] = value(lanes[lane]->a[r], i);
        for (unsigned r = 0; r < 2; ++r) right[2 * t + r * 8 + i][g] = value(lanes[lane]->b[r], i);
      }
    }
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      for (unsigned r = 0; r < 4; ++r) {
        const unsigned row = lane / 4 + r / 2 * 8, column = lane % 4 * 2 + r % 2;
        for (unsigned k = 0; k < kDepth; ++k)
          lanes[lane]->sums[r] += left[row][k] * right[k][column];
      }
    }
  });
}

// --- TMA and mbarriers ---

void Box::bring(std::byte* shared_memory, std::size_t offset) const {
  constexpr std::size_t kColumns = 64;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      const long long from_row = y + static_cast<long long>(row);
      const long long from_column = x + static_cast<long long>(column);
      const bool inside = from_row >= 0 && from_row < height && from_column >= 0 &&
                          from_column < static_cast<long long>(width);
      const std::uint16_t value = inside ? matrix[from_row * width + from_column] : 0;
      const std::size_t to = swizzled(offset + 128 * row + 2 * column);
      std::memcpy(shared_memory + to, &value, sizeof value);
    }
  }
}

TensorMap make_tensor_map(const std::uint16_t* matrix,
                          unsigned height,
                          unsigned width,
                          unsigned rows) {
  TensorMap map;
  map.opaque[0] = reinterpret_cast<std::uintptr_t>(matrix);
  map.opaque[1] = height;
  map.opaque[2] = width;
  map.opaque[3] = rows;
  return map;
}

unsigned shared_offset(const void* address) {
  return static_cast<unsigned>(current->memory().offset_of(address));
}
void init_mbarrier(void* mbarrier, unsigned count, Place place) {
  current->init_mbarrier(mbarrier, count, place);
}
void fence_mbarriers() {
  current->fence_mbarriers();
}
void arrive(void* mbarrier, std::size_t bytes, Place place) {
  current->arrive(mbarrier, bytes, place);
}
void wait_for_mbarrier(void* mbarrier, unsigned parity, Place place) {
  current->wait_for_mbarrier(mbarrier, parity, place);
}
void copy_box(void* shared, const TensorMap& map, int x, int y, void* mbarrier, Place place) {
  Box box;
  box.matrix = reinterpret_cast<const std::uint16_t*>(map.opaque[0]);
  box.height = static_cast<unsigned>(map.opaque[1]);
  box.width = static_cast<unsigned>(map.opaque[2]);
  box.rows = static_cast<unsigned>(map.opaque[3]);
  box.x = x;
  box.y = y;
  current->check_global(box.matrix, std::size_t{2} * box.height * box.width, 16, place);
  current->copy_box(shared, box, mbarrier, place);
}

bool is_elected(Place place) {
  bool is = false;
  together<bool*>("elect.sync", &is, place, [](auto& lanes) {
    **lanes[current->any_number() % kWarpSize] = true;
  });
  return is;
}

// --- wgmma ---

namespace {

float read_bfloat(std::size_t offset, Place place) {
  const std::byte* const at = current->memory().begin() + offset;
  current->read(at, 2, current->thread(), place);
  return bfloat_at(at);
}

/// Of a warp of the group: 16 rows of the sums.
void multiply_rows(const std::array<float*, kWarpSize>& sums,
                   unsigned warp,
                   unsigned columns,
                   const OperandInShared& a,
                   const OperandInShared& b,
                   Place place) {
  constexpr std::size_t kRows = 16, kDepth = 16;
  std::vector<float> left(kRows * kDepth), right(kDepth * columns);
  for (unsigned row = 0; row < kRows; ++row) {
    for (unsigned k = 0; k < kDepth; ++k)
      left[row * kDepth + k] = read_bfloat(a.along_depth(kRows * warp + row, k), place);
  }
  for (unsigned k = 0; k < kDepth; ++k) {
    for (unsigned column = 0; column < columns; ++column)
      right[k * columns + column] = read_bfloat(b.along_columns(k, column), place);
  }
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    for (unsigned i = 0; i < columns / 2; ++i) {
      const unsigned row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      for (unsigned k = 0; k < kDepth; ++k)
        sums[lane][i] += left[row * kDepth + k] * right[k * columns + column];
    }
  }
}

struct Nothing {};

}  // namespace

void fence_group(Place place) {
  together<Nothing>(
      "wgmma.fence", {}, place, [](auto&) { current->warp_group_work().fenced = true; });
}

void multiply_in_group(float* sums,
                       unsigned columns,
                       std::uint64_t a,
                       std::uint64_t b,
                       Place place) {
  struct Product {
    float* sums;
    std::uint64_t a, b;
  };
  together<Product>("wgmma.mma_async", {sums, a, b}, place, [&](auto& lanes) {
    WarpGroupWork& work = current->warp_group_work();
    if (!work.fenced) fail("{}: no wgmma.fence is before it", text_of(place));
    std::array<float*, kWarpSize> of_lanes{};
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      if (lanes[lane]->a != a || lanes[lane]->b != b)
        fail("{}: the lanes of a warp name different operands", text_of(place));
      of_lanes[lane] = lanes[lane]->sums;
    }
    current->expect_same_in_group(2 * work.issued, a, place);
    current->expect_same_in_group(2 * work.issued + 1, b, place);
    ++work.issued;
    // What is in the sums is kept aside until they are waited for.
    const bool first = work.uncommitted.empty() && work.groups.empty();
    if (first) {
      for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        work.kept[lane].assign(of_lanes[lane], of_lanes[lane] + columns / 2);
        std::fill_n(of_lanes[lane], columns / 2, std::numeric_limits<float>::quiet_NaN());
      }
      work.sums = of_lanes;
    }
    const unsigned warp = current->thread() / kWarpSize % 4;
    work.uncommitted.push_back([=,
                                &work,
                                one = OperandInShared::of_wgmma(a, place),
                                other = OperandInShared::of_wgmma(b, place)] {
      std::array<float*, kWarpSize> into{};
      for (unsigned lane = 0; lane < kWarpSize; ++lane) into[lane] = work.kept[lane].data();
      multiply_rows(into, warp, columns, one, other, place);
    });
  });
}

void commit_group(Place place) {
  together<Nothing>("wgmma.commit_group", {}, place, [](auto&) {
    WarpGroupWork& work = current->warp_group_work();
    work.groups.push_back(std::exchange(work.uncommitted, {}));
  });
}

void wait_for_group(unsigned groups, Place place) {
  together<Nothing>("wgmma.wait_group", {}, place, [&](auto&) {
    WarpGroupWork& work = current->warp_group_work();
    while (work.groups.size() > groups) {
      for (const auto& product : work.groups.front()) product();
      work.groups.pop_front();
    }
    current->join_lanes();
    if (!work.groups.empty() || !work.uncommitted.empty()) return;
    work.fenced = false;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      std::ranges::copy(work.kept[lane], work.sums[lane]);
      work.kept[lane].clear();
    }
  });
}

}  // namespace launchgap::kernels::emulated
