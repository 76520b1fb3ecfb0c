// What a block on the CPU is made of: its threads, and what is on its way for them.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <ucontext.h>
#include <vector>

#include "kernels/ladder/emulated_memory.h"
#include "kernels/ladder/emulated_tensor_memory.h"

namespace launchgap::kernels::emulated {

inline constexpr std::size_t kStackBytes = 64 << 10, kAsyncBytes = 16;
inline constexpr unsigned kMostMbarriers = 16;

struct Copy {
  std::byte* to;
  const std::byte* from;  // null: zeros
};

struct Access {
  std::size_t offset, bytes;
  Place place;
};

/// A barrier in shared memory that counts arrivals, and bytes that copies bring.
struct Mbarrier {
  unsigned count = 0, missing = 0;  // arrivals of a phase, and of this one those to come
  long long missing_bytes = 0;
  unsigned phases = 0;  // that are over
  Clock arrived, over;  // what those had seen that have arrived, and of the phases that are over
  unsigned who = 0;     // whose writes its copies are
  bool fenced = false;  // the copies' hardware sees it
};

/// A part of a matrix on its way, by TMA.
struct BoxCopy {
  std::byte* to;
  Box from;
  Mbarrier* mbarrier;
};

/// An arrival that comes when the products of tcgen05 up to this one are done.
struct ProductsDone {
  Mbarrier* mbarrier;
  unsigned last;
  Clock asked;  // what the thread had seen that asked for it
};

/// What a warp has issued of wgmma, and not waited for.
struct WarpGroupWork {
  std::vector<std::function<void()>> uncommitted;
  std::deque<std::vector<std::function<void()>>> groups;
  std::size_t issued = 0;
  bool fenced = false;
  std::array<float*, kWarpSize> sums{};            // of each lane, NaN meanwhile
  std::array<std::vector<float>, kWarpSize> kept;  // what they will be
};

struct Thread {
  enum class State { ready, at_barrier, at_mbarrier, in_warp, done };

  State state = State::ready;
  Clock clock;
  Place place;  // where it waits
  const char* instruction = nullptr;
  void* brought = nullptr;
  std::vector<Copy> uncommitted;
  std::deque<std::vector<Copy>> groups;
  std::vector<Access> accesses;  // since all lanes of its warp were at one instruction
  TensorMemoryUse columns;
  ucontext_t context{};
  std::unique_ptr<std::byte[]> stack;
};

}  // namespace launchgap::kernels::emulated
