// One block of a GPU on the CPU, for tests: each thread is a fiber, and the instructions of
// instructions.h do what the PTX ISA says of them. It reports what a GPU would compute wrong
// without a word.
//
// Threads run in a seeded random order, with one warp well ahead of the others for a while. Shared
// memory is NaN until it is written; so is what an asynchronous copy has not brought, and it brings
// nothing before somebody waits. A fault ends the launch with Fault: an address that is no
// operand's, or not aligned; a read of what was not written, or has not arrived; a read or write
// beside another thread's, without a barrier between them; lanes of a warp at different
// instructions; threads that wait for ever.
//
// It shows neither time, nor what weakly ordered memory does, nor a PTX ISA that was misread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace launchgap::kernels::emulated {

struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Global memory that the kernel may use.
struct Operand {
  const void* begin = nullptr;
  std::size_t bytes = 0;
};

/// Where and how often a warp's accesses to shared memory take turns: "tiles.cu:31: 2-way".
using BankConflicts = std::map<std::string, std::size_t>;

/// Runs `kernel` as a grid of this shape, whose threads are a multiple of 32, one block after the
/// other. Throws Fault.
BankConflicts run(LaunchShape shape,
                  std::uint64_t seed,
                  std::span<const Operand> operands,
                  const std::function<void()>& kernel);

// --- What instructions.h is made of, within a launch ---

/// Where an instruction stands: as std::source_location, which clang 14 does not have.
class Place {
 public:
  Place() = default;
  static Place current(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    Place place;
    place.file_ = file;
    place.line_ = line;
    return place;
  }
  const char* file_name() const { return file_; }
  unsigned line() const { return line_; }

 private:
  const char* file_ = "";
  unsigned line_ = 0;
};

unsigned block_index();
unsigned block_size();
unsigned thread_index();
constexpr unsigned kWarpSize = 32;

void barrier(Place place);
/// Throws Fault where it is none of the operands, or not aligned.
void check_global(const void* address, std::size_t bytes, std::size_t alignment, Place place);

/// Memory of the block for a variable; the same for each of its threads.
void* shared_memory(const void* variable, std::size_t bytes);
template <class Type>
Type& shared_variable() {
  static char variable;
  return *static_cast<Type*>(shared_memory(&variable, sizeof(Type)));
}
/// What a launch asks for, of which the kernel wants so much.
void* launched_memory(std::size_t bytes);
void read_shared(const void* address, std::size_t bytes, Place place);
void write_shared(const void* address, std::size_t bytes, Place place);

/// A copy of 16 bytes into shared memory, part of the group that is committed next; of zeros if
/// `global` is null.
void copy_async(void* shared, const void* global, Place place);
void commit_copies();
/// Until no more than so many groups, the last ones, are on their way.
void wait_for_copies(unsigned groups);

/// A part of a matrix in memory, as TMA brings it: `rows` rows of 128 bytes, of which the pieces of
/// 16 bytes are exchanged by the row (128-byte swizzle); 0 beyond the matrix.
struct Box {
  const std::uint16_t* matrix = nullptr;
  unsigned height = 0, width = 0;  // of the matrix, in elements
  unsigned rows = 0;
  int x = 0, y = 0;

  std::size_t bytes() const { return std::size_t{128} * rows; }
  void bring(std::byte* shared_memory, std::size_t offset) const;
};

/// Where an offset in shared memory is with the 128-byte swizzle.
constexpr std::size_t swizzled(std::size_t offset) {
  return offset ^ (offset >> 7 & 7) << 4;
}

/// A tensor map, in the 128 bytes that a GPU's has.
struct TensorMap {
  alignas(128) std::uint64_t opaque[16] = {};
};
TensorMap make_tensor_map(const std::uint16_t* matrix,
                          unsigned height,
                          unsigned width,
                          unsigned rows);

unsigned shared_offset(const void* address);
void init_mbarrier(void* mbarrier, unsigned count, Place place);
void fence_mbarriers();
/// Also says that so many bytes come.
void arrive(void* mbarrier, std::size_t bytes, Place place);
void wait_for_mbarrier(void* mbarrier, unsigned parity, Place place);
void copy_box(void* shared, const TensorMap& map, int x, int y, void* mbarrier, Place place);

/// Any of the warp's lanes, which have all come here.
bool is_elected(Place place);

// wgmma: a group of four warps. Sums are NaN until they were waited for.
void fence_group(Place place);
void multiply_in_group(float* sums,
                       unsigned columns,
                       std::uint64_t a,
                       std::uint64_t b,
                       Place place);
void commit_group(Place place);
void wait_for_group(unsigned groups, Place place);

// tcgen05: sums are in tensor memory, and products are done in the order in which they were asked
// for, some time before an mbarrier that waits for them is over.
void take_columns(unsigned* address, unsigned columns, Place place);
void give_columns(unsigned address, unsigned columns, Place place);
void fence_before_barrier();
void fence_after_barrier();
void multiply_into_columns(unsigned sums,
                           std::uint64_t a,
                           std::uint64_t b,
                           unsigned kind,
                           bool add,
                           Place place);
void arrive_when_done(void* mbarrier, Place place);
void wait_for_warp(Place place);
/// NaN until the wait.
void load_columns(float* to, unsigned count, unsigned address, Place place);
void wait_for_columns(Place place);

std::uint16_t to_half(float value);
unsigned to_bfloats(float first, float second);

// WMMA: where an element is, is another permutation in each launch, since it is not specified.
void load_halves(unsigned (&to)[8], const std::uint16_t* from, unsigned pitch, Place place);
void multiply_halves(float (&sums)[8], const unsigned (&a)[8], const unsigned (&b)[8], Place place);
void store_sums(float* to, const float (&sums)[8], unsigned pitch, Place place);

void load_matrices(unsigned (&to)[4], const std::uint16_t* row, bool transposed, Place place);
void multiply_bfloats(float (&sums)[4],
                      const unsigned (&a)[4],
                      const unsigned (&b)[2],
                      Place place);

}  // namespace launchgap::kernels::emulated
