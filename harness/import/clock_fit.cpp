#include "harness/import/clock_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/import/call_names.h"
#include "harness/stats/stats.h"

namespace launchgap::recording {
namespace {

/// A time, and how far ahead the clock is at most, or at least, then.
struct Bound {
  double at, ahead;
};

/// Of points by time those that can touch a line from below (`sign` 1: all points are above the
/// line) or from above (-1).
std::vector<Bound> hull(std::vector<Bound> points, double sign) {
  std::ranges::sort(points, {}, &Bound::at);
  std::vector<Bound> kept;
  for (const Bound& point : points) {
    while (kept.size() > 1) {
      const Bound &a = kept[kept.size() - 2], &b = kept.back();
      const double turn =
          (b.at - a.at) * (point.ahead - a.ahead) - (b.ahead - a.ahead) * (point.at - a.at);
      if (sign * turn > 0) break;
      kept.pop_back();
    }
    kept.push_back(point);
  }
  return kept;
}

/// Where a concave function is largest.
double argmax(double low, double high, const std::function<double(double)>& function) {
  for (;;) {
    const double third = (high - low) / 3, left = low + third, right = high - third;
    if (left == low || right == high) return (low + high) / 2;  // no number lies between
    if (function(left) < function(right)) {
      low = left;
    } else {
      high = right;
    }
  }
}

/// Lines ahead = level + slope at, between bounds.
class Feasible {
 public:
  Feasible(std::vector<Bound> most, std::vector<Bound> least)
      : most_(hull(std::move(most), 1)), least_(hull(std::move(least), -1)) {
    constexpr double kSteepest = 0.01;  // 10,000 ppm: no two clocks of a machine differ by that
    slope_ = argmax(-kSteepest, kSteepest, [&](double slope) { return room(slope); });
    if (!any()) return;
    steepest_ = end(slope_, kSteepest);
    flattest_ = end(slope_, -kSteepest);
  }

  bool any() const { return room(slope_) >= 0; }
  double slope() const { return slope_; }
  double level() const { return (highest(slope_) + lowest(slope_)) / 2; }
  /// By how much another line may differ from the one in the middle at a time.
  double error(double at) const {
    const auto high = [&](double slope) { return highest(slope) + slope * at; };
    const auto low = [&](double slope) { return -lowest(slope) - slope * at; };
    const double middle = level() + slope_ * at;
    return std::max(high(argmax(flattest_, steepest_, high)) - middle,
                    low(argmax(flattest_, steepest_, low)) + middle);
  }

 private:
  double highest(double slope) const {
    double level = std::numeric_limits<double>::max();
    for (const Bound& bound : most_) level = std::min(level, bound.ahead - slope * bound.at);
    return level;
  }
  double lowest(double slope) const {
    double level = std::numeric_limits<double>::lowest();
    for (const Bound& bound : least_) level = std::max(level, bound.ahead - slope * bound.at);
    return level;
  }
  double room(double slope) const { return highest(slope) - lowest(slope); }
  /// The last slope from `inside` towards `outside` that has room.
  double end(double inside, double outside) const {
    if (room(outside) >= 0) return outside;
    for (;;) {
      const double middle = (inside + outside) / 2;
      if (middle == inside || middle == outside) return inside;
      (room(middle) >= 0 ? inside : outside) = middle;
    }
  }

  std::vector<Bound> most_, least_;
  double slope_ = 0, steepest_ = 0, flattest_ = 0;
};

/// Nothing where no launch found its stream idle.
std::optional<double> median_on_idle(const Process& process, const RecordedLaunches& launches) {
  std::vector<double> times;
  for (const RecordedLaunch& launch : launches.launches) {
    if (launch.state == StreamState::idle && !launch.is_graph)
      times.push_back(
          static_cast<double>(launch.begin_ns - process.trace.calls[launch.call].begin_ns));
  }
  return stats::median(std::move(times));
}

std::string time_text(double nanoseconds) {
  return quantity(nanoseconds, "ns");
}

/// Exact for times that are near each other, and never too large for its type.
double difference(std::int64_t a, std::int64_t b) {
  return (a < 0) == (b < 0) ? static_cast<double>(a - b)
                            : static_cast<double>(a) - static_cast<double>(b);
}

/// No recording has such times; the sums of two others have room.
constexpr double kFarthest = 4e18;

bool is_far(std::int64_t time_ns) {
  return std::abs(static_cast<double>(time_ns)) > kFarthest;
}

using activity::Call;

/// A launch with its kernels' times.
struct Delay {
  std::int64_t called_ns, returned_ns, begin_ns, end_ns;
};

std::vector<Delay> delays_of(const Process& process, const RecordedLaunches& launches) {
  std::vector<Delay> delays;
  for (const RecordedLaunch& launch : launches.launches) {
    const Call& call = process.trace.calls[launch.call];
    if (launch.stream)
      delays.push_back({call.begin_ns, call.end_ns, launch.begin_ns, launch.end_ns});
  }
  return delays;
}

/// For each wait for the device, how far the last of the kernels that were launched before it
/// outlasts it.
std::vector<ClockBound> outlasting(const Process& process, std::vector<Delay> delays) {
  std::vector<const Call*> waits;
  for (const Call& call : process.trace.calls) {
    if (call.purpose == activity::Purpose::wait && has_times(call) &&
        waits_for_device(process.trace.name(call.id)))
      waits.push_back(&call);
  }
  std::ranges::sort(waits, {}, &Call::begin_ns);
  if (!waits.empty()) std::ranges::sort(delays, {}, &Delay::returned_ns);
  std::vector<ClockBound> bounds;
  auto next = delays.begin();
  std::optional<std::int64_t> last_end;
  for (const Call* const wait : waits) {
    for (; next != delays.end() && next->returned_ns <= wait->begin_ns; ++next)
      last_end = std::max(last_end.value_or(next->end_ns), next->end_ns);
    if (last_end) bounds.push_back({wait->end_ns, *last_end - wait->end_ns});
  }
  return bounds;
}

/// Of waits for a stream, the shortest time by which work outlasts one. No record tells for which
/// stream a wait was, but all that was launched before it has ended on one of them. It may have
/// been one that had nothing to do; not all of kLeastWaits, where the process has one stream.
std::optional<std::int64_t> shortest_outlasting(const Process& process,
                                                const RecordedLaunches& launches) {
  constexpr std::size_t kLeastWaits = 10;
  const activity::Trace& trace = process.trace;
  std::vector<const Call*> waits;
  std::unordered_map<std::uint32_t, std::int64_t> returned;
  for (const Call& call : trace.calls) {
    if (!has_times(call)) continue;
    const std::string_view name = trace.name(call.id);
    if (name.starts_with("cudaStreamSynchronize") || name.starts_with("cuStreamSynchronize"))
      waits.push_back(&call);
    if (call.purpose == activity::Purpose::copy || call.purpose == activity::Purpose::fill)
      returned.emplace(call.correlation, call.end_ns);
  }
  if (waits.size() < kLeastWaits) return std::nullopt;
  struct Work {
    std::int64_t returned_ns, end_ns;
    std::uint32_t stream;
  };
  std::vector<Work> work;
  for (const RecordedLaunch& launch : launches.launches) {
    if (launch.stream)
      work.push_back({trace.calls[launch.call].end_ns, launch.end_ns, *launch.stream});
  }
  for (const activity::Transfer& transfer : trace.transfers) {
    const auto call = returned.find(transfer.correlation);
    if (has_times(transfer) && call != returned.end())
      work.push_back({call->second, transfer.end_ns, transfer.stream});
  }
  std::ranges::sort(work, {}, &Work::returned_ns);
  std::ranges::sort(waits, {}, &Call::begin_ns);
  std::map<std::uint32_t, std::int64_t> last_end;  // of each stream
  std::optional<std::int64_t> shortest;
  std::size_t seen = 0;
  auto next = work.begin();
  for (const Call* const wait : waits) {
    for (; next != work.end() && next->returned_ns <= wait->begin_ns; ++next) {
      std::int64_t& last = last_end.try_emplace(next->stream, next->end_ns).first->second;
      last = std::max(last, next->end_ns);
    }
    if (last_end.empty()) continue;
    const auto first =
        std::ranges::min_element(last_end, {}, [](const auto& own) { return own.second; });
    const std::int64_t outlasts = first->second - wait->end_ns;
    shortest = std::min(shortest.value_or(outlasts), outlasts);
    ++seen;
  }
  return seen >= kLeastWaits ? shortest : std::nullopt;
}

/// The slope of the shortest delays over time, in ten windows; nothing for a short recording.
std::optional<double> drift_ppm(const std::vector<Delay>& delays) {
  constexpr std::size_t kWindows = 10;
  constexpr std::int64_t kShortest = 100'000'000;
  if (delays.size() < 10 * kWindows) return std::nullopt;
  const std::int64_t begin = delays.front().called_ns, end = delays.back().called_ns;
  if (end - begin < kShortest) return std::nullopt;
  struct Window {
    double at_ns = 0, shortest_ns = std::numeric_limits<double>::max();
  };
  std::vector<Window> windows(kWindows);
  for (const Delay& delay : delays) {
    const double place =
        static_cast<double>(delay.called_ns - begin) / static_cast<double>(end - begin);
    Window& window = windows[std::min(kWindows - 1, static_cast<std::size_t>(place * kWindows))];
    const auto length = static_cast<double>(delay.begin_ns - delay.called_ns);
    if (length < window.shortest_ns)
      window = {static_cast<double>(delay.called_ns - begin), length};
  }
  std::erase_if(windows, [](const Window& window) {
    return window.shortest_ns == std::numeric_limits<double>::max();
  });
  if (windows.size() < 3) return std::nullopt;
  double mean_x = 0, mean_y = 0;
  for (const Window& window : windows) {
    mean_x += window.at_ns / static_cast<double>(windows.size());
    mean_y += window.shortest_ns / static_cast<double>(windows.size());
  }
  double xy = 0, xx = 0;
  for (const Window& window : windows) {
    xy += (window.at_ns - mean_x) * (window.shortest_ns - mean_y);
    xx += (window.at_ns - mean_x) * (window.at_ns - mean_x);
  }
  return xy / xx * 1e6;
}

}  // namespace

std::optional<ClockLine> fit_clock(const Process& process,
                                   const RecordedLaunches& launches,
                                   std::int64_t tick_ns) {
  const ClockBounds bounds = clock_bounds(process, launches);
  if (bounds.least.empty() || !has_one_gpu(process)) return std::nullopt;
  // Relative to the first, for a double has no room for Unix nanoseconds.
  ClockLine line;
  line.from_ns = bounds.most.front().host_ns;
  const std::int64_t base = bounds.most.front().ahead_ns;
  std::vector<Bound> most, least;
  std::int64_t last = line.from_ns;
  const auto add = [&](const ClockBound& bound, std::int64_t slack, std::vector<Bound>& to) {
    last = std::max(last, bound.host_ns);
    to.push_back({difference(bound.host_ns, line.from_ns),
                  difference(bound.ahead_ns, base) + static_cast<double>(slack)});
  };
  for (const ClockBound& bound : bounds.most) add(bound, tick_ns, most);
  for (const ClockBound& bound : bounds.least) add(bound, -tick_ns, least);
  const Feasible lines(std::move(most), std::move(least));
  if (!lines.any() || is_far(base) || std::abs(lines.level()) > kFarthest) return std::nullopt;
  line.ahead_ns = base + std::llround(lines.level());
  line.drift_ppm = lines.slope() * 1e6;
  line.error_ns = std::max(lines.error(0), lines.error(static_cast<double>(last - line.from_ns)));
  return line;
}

Process on_host_clock(const Process& process, const ClockLine& line) {
  Process moved = process;
  for_each_work(moved.trace, [&](auto& record) {
    if (!has_times(record)) return;
    if (is_far(record.end_ns)) {
      record.begin_ns = record.end_ns = 0;  // not known
      return;
    }
    const std::int64_t with_drift = record.begin_ns - line.ahead_ns;
    const double drift = line.drift_ppm * 1e-6;
    const double since = difference(with_drift, line.from_ns);
    const std::int64_t begin = with_drift - std::llround(since * drift / (1 + drift));
    record.end_ns = begin + (record.end_ns - record.begin_ns);
    record.begin_ns = begin;
  });
  return moved;
}

AlignedProcess::AlignedProcess(const Process& recorded, std::int64_t tick_ns)
    : launches(launches_of(recorded, tick_ns)), recorded_(recorded) {
  constexpr double kWellKnown = 0.1, kMostEarly = 0.001;
  clocks = check_clocks(recorded, launches);
  if (clocks.trusted()) return;
  line = fit_clock(recorded, launches, tick_ns);
  if (!line) return;
  Process moved = on_host_clock(recorded, *line);
  RecordedLaunches of_moved = launches_of(moved, tick_ns);
  const ClockCheck after = check_clocks(moved, of_moved);
  const std::optional<double> usual = median_on_idle(moved, of_moved);
  const std::string known =
      fmt::format("; a correction is known to ± {}", time_text(line->error_ns));
  if (!usual) {
    clocks.problem += known + ", and nothing tells whether that is enough";
  } else if (line->error_ns > kWellKnown * *usual) {
    clocks.problem +=
        known + fmt::format(", which is too coarse for launches of {}", time_text(*usual));
  } else if (!after.trusted() || static_cast<double>(of_moved.counts.early) >
                                     kMostEarly * static_cast<double>(of_moved.counts.joined)) {
    clocks.problem += known + ", and kernels begin before their launches with it";
  } else {
    clocks = after;
    clocks.drift_ppm = line->drift_ppm;
    launches = std::move(of_moved);
    moved_ = std::move(moved);
  }
}

bool has_one_gpu(const Process& process) {
  return std::ranges::all_of(process.streams, [&](const Stream& stream) {
    return stream.gpu == process.streams.front().gpu;
  });
}

ClockBounds clock_bounds(const Process& process, const RecordedLaunches& launches) {
  std::vector<Delay> delays = delays_of(process, launches);
  ClockBounds bounds;
  for (const Delay& delay : delays)
    bounds.most.push_back({delay.called_ns, delay.begin_ns - delay.called_ns});
  bounds.least = outlasting(process, std::move(delays));
  return bounds;
}

ClockCheck check_clocks(const Process& process, const RecordedLaunches& launches) {
  // A queue of a thousand long kernels delays by less, and an error of conversion is less.
  constexpr std::int64_t kLongestQueue = 1'000'000'000;
  constexpr std::int64_t kConversionError = 10'000;
  constexpr double kMostEarly = 0.01;

  const std::vector<Delay> delays = delays_of(process, launches);
  ClockCheck check;
  if (delays.empty()) return check;
  // A call that takes seconds, as the first of a process may, tells nothing of the clocks.
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max(), shortest_queue = shortest;
  for (const Delay& delay : delays) {
    shortest = std::min(shortest, delay.begin_ns - delay.called_ns);
    shortest_queue = std::min(shortest_queue, delay.begin_ns - delay.returned_ns);
  }
  check.ahead_most_ns = shortest;
  // Of several devices, each has a clock of its own, and no record tells for which a wait was.
  if (has_one_gpu(process)) {
    for (const ClockBound& bound : outlasting(process, delays))
      check.ahead_least_ns =
          std::max(check.ahead_least_ns.value_or(bound.ahead_ns), bound.ahead_ns);
  }

  const auto of_streams = shortest_outlasting(process, launches);
  if (of_streams > kConversionError)
    check.ahead_least_ns = std::max(check.ahead_least_ns, of_streams);

  const bool ahead = shortest_queue > kLongestQueue || check.ahead_least_ns > kConversionError;
  const auto early = static_cast<double>(launches.counts.early);
  const bool behind = early > kMostEarly * static_cast<double>(delays.size());
  if (ahead || behind) check.drift_ppm = drift_ppm(delays);
  if (ahead) {
    check.problem =
        fmt::format("the GPU's clock is ahead of the host's, by {} at most",
                    duration_text(static_cast<std::uint64_t>(std::max<std::int64_t>(shortest, 0))));
  } else if (behind) {
    check.problem = fmt::format(
        "{} of {} kernels begin before their launch: the GPU's clock is behind the host's",
        launches.counts.early,
        delays.size());
  }
  return check;
}

}  // namespace launchgap::recording
