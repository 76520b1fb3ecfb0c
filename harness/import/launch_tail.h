// Which launches took long, and why, as far as the events tell.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "harness/import/launches.h"
#include "harness/record/launch_tail.h"

namespace launchgap::recording {

/// Of the launches on one GPU, and with `and_unknown` of those without a kernel too; graphs are
/// launches. Nothing where there are none.
///
/// Long is a call beyond the 99th percentile of 100 calls or more; one that takes more than kGiant
/// times the median of all but the longest, or kLongAlone where there is no other; and one that
/// finds a full queue and takes more than kWaits times the median of kFewestWithRoom or more that
/// find room. Without `clocks_agree` no queue is known to be full. Of what `begins`
/// after a warm-up no launch is a first one.
enum class TailBegins { with_recording, after_warm_up };
std::optional<LaunchTail> launch_tail(const Process& process,
                                      const RecordedLaunches& launches,
                                      std::uint64_t gpu,
                                      bool and_unknown,
                                      bool clocks_agree,
                                      TailBegins begins = TailBegins::with_recording);

/// A time of the trace's clock in which a launching thread was taken off its CPU.
struct OffItsCpu {
  std::int64_t begin_ns = 0, end_ns = 0;
};

/// Of a block of launchgap's own trace. A call that takes long within one of these times, which are
/// in order, was held up by the host's scheduler.
std::optional<LaunchTail> own_launch_tail(const activity::Trace& trace,
                                          std::span<const OffItsCpu> off_its_cpu = {});

inline constexpr double kGiant = 10, kWaits = 2;
inline constexpr std::int64_t kLongAlone = 1'000'000;
inline constexpr std::size_t kFewestWithRoom = 20;
/// A stream takes some 1,020 launches, copies and fills that have not begun. Events and waits
/// between streams, which recordings do not have, take room too.
inline constexpr std::size_t kFullQueue = 900;
/// What goes on beside a quarter of the usual launches too does not make a launch slow.
inline constexpr double kMostUsualBeside = 0.25;

}  // namespace launchgap::recording
