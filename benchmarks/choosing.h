// Choosing among several ways to compute one thing: each verified, each timed, and all of them then
// measured in turn.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "harness/core/choice.h"

namespace launchgap {

/// Runs `verify` and notes what came of it: "slower" until it is chosen, "wrong" or "failed" with
/// the reason. Rethrows an error after which the device cannot be used, and what is no library's.
void judge(Choice& choice, const std::function<void()>& verify);

/// Whether it may be chosen.
inline bool is_sound(const Choice& choice) {
  return choice.reason.empty();
}

/// Times every sound choice seven times by `time`, which gets its place and gives nanoseconds, and
/// notes the medians. The place of the best, which is then "chosen". Throws WrongResult if none is
/// sound.
std::size_t choose_best(std::vector<Choice>& choices,
                        const std::function<double(std::size_t)>& time);

/// Calls `way(i)` for each of `count`, beginning with another one each time.
class Turns {
 public:
  template <class Way>
  void take(int count, Way&& way) {
    for (int i = 0; i < count; ++i) way((first_ + i) % count);
    ++first_;
  }

 private:
  int first_ = 0;
};

}  // namespace launchgap
