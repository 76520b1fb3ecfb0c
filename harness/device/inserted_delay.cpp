#include "harness/device/inserted_delay.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/printable.h"

namespace launchgap {

namespace inserted_delay {

std::uint64_t steps = 0;

namespace {

/// So many additions, each of which waits for the one before it. `one` is in a register, since
/// processors fold additions of constants, and would do many steps at once.
template <int kSteps>
[[gnu::always_inline]] inline void add(std::uint64_t& sum, std::uint64_t one) noexcept {
  if constexpr (kSteps == 1) {
    asm volatile("" : "+r"(sum));
    sum += one;
  } else {
    add<kSteps / 2>(sum, one);
    add<kSteps - kSteps / 2>(sum, one);
  }
}

}  // namespace

/// The branches depend on `count` alone, so that they are predicted: a loop of single steps would
/// cost a misprediction at its end in one process and none in the next. There are no barriers,
/// which would hold up the call itself for longer than the delay; so a processor that works out of
/// order may do a part of the steps beside the call, and what the call's time grows by is not
/// exactly the delay.
[[gnu::noinline]] std::uint64_t run(std::uint64_t count, std::uint64_t sum) noexcept {
  std::uint64_t one = 1;
  asm("" : "+r"(one));  // the compiler may not know what it is
  for (; count >= 64; count -= 64) add<64>(sum, one);
  if (count & 32) add<32>(sum, one);
  if (count & 16) add<16>(sum, one);
  if (count & 8) add<8>(sum, one);
  if (count & 4) add<4>(sum, one);
  if (count & 2) add<2>(sum, one);
  if (count & 1) add<1>(sum, one);
  return sum;
}

}  // namespace inserted_delay

namespace {

constexpr double kMostNs = 1e9;

/// Mean of a delay of so many steps: the smallest of some rounds, since what interrupts only adds.
/// Each delay begins with what the one before it ended with, or they would overlap.
double cost_ns(std::uint64_t steps, double expected_ns) {
  constexpr int kRounds = 7;
  constexpr double kRoundNs = 300'000;
  const int calls = static_cast<int>(std::clamp(kRoundNs / std::max(expected_ns, 1.0), 1.0, 1e4));
  double least = kMostNs * 1e3;
  std::uint64_t sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t begin = now_ns();
    for (int i = 0; i < calls; ++i) sum = inserted_delay::run(steps, sum);
    least = std::min(least, static_cast<double>(now_ns() - begin) / calls);
  }
  return least;
}

/// The clock of a CPU that was idle is low at first.
void wake_up() {
  constexpr std::int64_t kWakeUpNs = 20'000'000;
  const std::int64_t until = now_ns() + kWakeUpNs;
  while (now_ns() < until) inserted_delay::run(1000, 0);
}

std::optional<double> asked_ns() {
  const char* const text = std::getenv("LAUNCHGAP_DELAY_NS");
  if (!text || !*text) return std::nullopt;
  char* end = nullptr;
  const double asked = std::strtod(text, &end);
  if (*end != '\0' || !(asked >= 0 && asked <= kMostNs)) {
    throw UsageError("LAUNCHGAP_DELAY_NS is '{}': it can be a number from 0 to 1e9",
                     printable(text, 40));
  }
  return asked > 0 ? std::optional(asked) : std::nullopt;
}

}  // namespace

std::optional<InsertedDelay> prepare_inserted_delay() {
  constexpr std::uint64_t kManySteps = 2000;
  constexpr int kMostCorrections = 10;
  constexpr double kCloseEnough = 0.03;
  const std::optional<double> asked = asked_ns();
  if (!asked) return std::nullopt;
  wake_up();
  InsertedDelay delay;
  delay.asked_ns = *asked;
  delay.least_ns = cost_ns(1, 10);
  const double step_ns = (cost_ns(kManySteps, 1000) - delay.least_ns) / (kManySteps - 1);
  double steps = 1 + std::max(0.0, (*asked - delay.least_ns) / step_ns);
  for (int i = 0; i < kMostCorrections; ++i) {
    const double off_ns = *asked - cost_ns(static_cast<std::uint64_t>(steps), *asked);
    if (std::abs(off_ns) < kCloseEnough * *asked) break;
    steps = std::max(1.0, std::round(steps + off_ns / step_ns));
  }
  inserted_delay::steps = static_cast<std::uint64_t>(steps);
  delay.inserted_ns = measured_delay_ns();
  return delay;
}

double measured_delay_ns() {
  if (inserted_delay::steps == 0) return 0;
  return cost_ns(inserted_delay::steps, cost_ns(inserted_delay::steps, kMostNs));
}

}  // namespace launchgap
