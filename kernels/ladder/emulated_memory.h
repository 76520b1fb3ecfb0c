// Shared memory of a block that is emulated: what is in it, and who may read and write it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/ladder/emulated.h"

namespace launchgap::kernels::emulated {

/// "tiles.cu:31".
std::string text_of(const Place& place);

template <class... Values>
[[noreturn]] void fail(fmt::format_string<Values...> format, Values&&... values) {
  throw Fault(fmt::format(format, std::forward<Values>(values)...));
}

void check_alignment(const void* address, std::size_t alignment, Place place);

inline constexpr unsigned kMostWarps = 12;

/// What happened before: of each thread, of what each mbarrier's copies bring, and of the products
/// of tcgen05, how far somebody has seen it (a vector clock).
using Clock = std::vector<unsigned>;
void join(Clock& own, const Clock& other);

class SharedMemory {
 public:
  /// `threads`: who is not below is a copy.
  explicit SharedMemory(unsigned threads);

  /// For a variable, the same each time.
  void* variable(const void* which, std::size_t bytes);
  std::byte* begin() { return memory_.get(); }
  std::size_t offset_of(const void* address) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - memory_.get());
  }

  /// By a thread that has seen so much. Throw Fault where a GPU's result would be by chance.
  void read(const void* address, std::size_t bytes, unsigned who, const Clock& seen, Place place);
  void write(const void* address, std::size_t bytes, unsigned who, const Clock& seen, Place place) {
    write(address, bytes, who, seen, place, false);
  }
  /// A copy is on its way to there: until it has arrived it is NaN, and nobody's.
  void expect_copy(void* address, std::size_t bytes, unsigned who, const Clock& seen, Place place);
  /// It has arrived, as what `who` wrote at this time.
  void arrived(const void* address, std::size_t bytes, unsigned who, unsigned at);

 private:
  /// Of two bytes: who wrote them last, and of each warp who read them last, with the time of their
  /// own clock.
  struct Cell {
    struct Mark {
      int who = -1;  // nobody
      unsigned at = 0;
    };
    Mark written;
    std::array<Mark, kMostWarps + 1> read;  // the last: by what is no thread
    bool in_flight = false;
  };

  void write(const void* address,
             std::size_t bytes,
             unsigned who,
             const Clock& seen,
             Place place,
             bool in_flight);
  std::span<Cell> cells(const void* address, std::size_t bytes, Place place);
  std::string name_of(int who) const;

  unsigned threads_;
  std::unique_ptr<std::byte, decltype(&std::free)> memory_;
  std::size_t used_ = 0;
  std::map<const void*, std::size_t> variables_;
  std::vector<Cell> cells_;
};

/// A bfloat16, wherever it is.
float bfloat_at(const std::byte* at);

/// How often words of one bank have to be read or written one after the other, for what a warp
/// wants at once; wide accesses come in parts.
std::size_t ways_of(std::span<const std::size_t> offsets, std::size_t bytes);

}  // namespace launchgap::kernels::emulated
