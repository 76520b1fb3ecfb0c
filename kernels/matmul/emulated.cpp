#include "kernels/matmul/emulated.h"

#include <array>

#include "kernels/element.h"
#include "kernels/matmul/emulated_block.h"

namespace launchgap::kernels::emulated {

BankConflicts run(unsigned blocks,
                  unsigned threads,
                  std::uint64_t seed,
                  std::span<const Operand> operands,
                  const std::function<void()>& kernel) {
  BankConflicts conflicts;
  std::mt19937_64 seeds(seed);
  for (unsigned i = 0; i < blocks; ++i)
    Block(i, threads, seeds(), operands, kernel, conflicts).run();
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
  return current->shared_memory(variable, bytes);
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
void wait_for_copies(unsigned groups, Place place) {
  current->wait_for_copies(groups, place);
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
      current->fail("{}: the lanes of a warp name different matrices", text_of(place));
  }
  if (reinterpret_cast<std::uintptr_t>(lanes[0]->memory) % 32 != 0 ||
      lanes[0]->pitch * sizeof(Element) % 16 != 0)
    current->fail("{}: a matrix is aligned to 32 bytes, and its rows to 16", text_of(place));
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
    for (unsigned row = 0; row < kSide; ++row)
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
        for (unsigned row = 0; row < kSide; ++row)
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

}  // namespace launchgap::kernels::emulated
