#include "harness/import/clock_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "harness/core/text.h"
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
    while (kept.size() >= 2) {
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
  for (int i = 0; i < 200; ++i) {
    const double left = low + (high - low) / 3, right = high - (high - low) / 3;
    (function(left) < function(right) ? low : high) =
        function(left) < function(right) ? left : right;
  }
  return (low + high) / 2;
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
    for (int i = 0; i < 200; ++i) {
      const double middle = (inside + outside) / 2;
      (room(middle) >= 0 ? inside : outside) = middle;
    }
    return inside;
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

}  // namespace

std::optional<ClockLine> fit_clock(const Process& process,
                                   const RecordedLaunches& launches,
                                   std::int64_t tick_ns) {
  const ClockBounds bounds = clock_bounds(process, launches);
  if (bounds.most.empty() || bounds.least.empty() || !has_one_gpu(process)) return std::nullopt;
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
  const auto move = [&](auto& records) {
    for (auto& record : records) {
      if (!has_times(record)) continue;
      if (is_far(record.end_ns)) {
        record.begin_ns = record.end_ns = 0;  // not known
        continue;
      }
      const std::int64_t with_drift = record.begin_ns - line.ahead_ns;
      const double drift = line.drift_ppm * 1e-6;
      const double since = difference(with_drift, line.from_ns);
      const std::int64_t begin = with_drift - std::llround(since * drift / (1 + drift));
      record.end_ns = begin + (record.end_ns - record.begin_ns);
      record.begin_ns = begin;
    }
  };
  move(moved.trace.kernels);
  move(moved.trace.transfers);
  move(moved.trace.graphs);
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

}  // namespace launchgap::recording
