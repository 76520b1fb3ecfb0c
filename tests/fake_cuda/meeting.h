// Kernels of several devices that wait for each other, as those of a collective do.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tests/fake_cuda/timeline.h"

namespace launchgap::fake {

/// A kernel of each party, none of which is over before all have begun. But for give_up(), with the
/// driver's lock.
class Meeting {
 public:
  explicit Meeting(std::size_t parties) : parties_(parties) {}

  /// The kernel of a party, enqueued behind `ahead`.
  void join(std::size_t party, ItemPointer kernel, ItemPointer ahead, std::function<void()> give);

  /// When the party's kernel is over: so long after the last has begun as its item lasts. None
  /// while some have not begun.
  std::optional<double> over_ns(std::size_t party, double begin_ns, double now_ns);

  /// Nobody waits any longer.
  void give_up() { given_up_ = true; }

 private:
  struct Party {
    ItemPointer kernel, ahead;
    std::function<void()> give;
    double duration_ns = 0;
  };
  std::optional<double> last_begin_ns(double now_ns);

  std::vector<Party> parties_;
  std::optional<double> begun_ns_;  // the last of them
  std::atomic<bool> given_up_{false};
};

/// That of one party. `give` is called when all have begun and none is over.
struct Attendance {
  std::shared_ptr<Meeting> meeting;
  std::size_t party = 0;
  std::function<void()> give;
};

}  // namespace launchgap::fake
