#include "tests/fake_cuda/meeting.h"

#include <algorithm>
#include <utility>

namespace launchgap::fake {

void Meeting::join(std::size_t party,
                   ItemPointer kernel,
                   ItemPointer ahead,
                   std::function<void()> give) {
  const double duration_ns = kernel->duration_ns;
  parties_[party] = {std::move(kernel), std::move(ahead), std::move(give), duration_ns};
}

std::optional<double> Meeting::last_begin_ns(double now_ns) {
  double last = 0;
  for (const Party& party : parties_) {
    if (!party.kernel) return std::nullopt;
    if (party.ahead && !party.ahead->executed)
      party.ahead->timeline->advance(now_ns, true, party.ahead.get());
    if (party.ahead && !party.ahead->executed) return std::nullopt;
    last = std::max({last, party.kernel->ready_ns, party.ahead ? party.ahead->end_ns : 0});
  }
  return last;
}

std::optional<double> Meeting::over_ns(std::size_t party, double begin_ns, double now_ns) {
  if (given_up_) {
    for (Party& one : parties_) one = {};  // what gives holds what it is given to
    return std::max(begin_ns, now_ns);
  }
  if (!begun_ns_) {
    begun_ns_ = last_begin_ns(now_ns);
    if (!begun_ns_) return std::nullopt;
    for (Party& one : parties_) {
      one.give();
      one.kernel = one.ahead = nullptr;
      one.give = nullptr;
    }
  }
  return std::max(begin_ns, *begun_ns_) + parties_[party].duration_ns;
}

}  // namespace launchgap::fake
