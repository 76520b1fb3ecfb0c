#include "harness/recording/clock_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "harness/recording/clock_check.h"

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
    (function(left) < function(right) ? low : high) = function(left) < function(right) ? left : right;
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

bool has_one_gpu(const Process& process) {
  return std::ranges::all_of(process.streams, [&](const Stream& stream) {
    return stream.gpu == process.streams.front().gpu;
  });
}

}  // namespace

std::int64_t ClockLine::ahead_at(std::int64_t host_ns) const {
  return ahead_ns + std::llround(drift_ppm * 1e-6 * static_cast<double>(host_ns - from_ns));
}

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
    to.push_back({static_cast<double>(bound.host_ns - line.from_ns),
                  static_cast<double>(bound.ahead_ns - base + slack)});
  };
  for (const ClockBound& bound : bounds.most) add(bound, tick_ns, most);
  for (const ClockBound& bound : bounds.least) add(bound, -tick_ns, least);
  const Feasible lines(std::move(most), std::move(least));
  if (!lines.any()) return std::nullopt;
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
      // The device's time is the host's plus what it is ahead then; the drift over what it is ahead
      // itself is taken along.
      const double drift = line.drift_ppm * 1e-6;
      const auto since = static_cast<double>(record.begin_ns - line.ahead_ns - line.from_ns);
      const std::int64_t begin = line.from_ns + std::llround(since / (1 + drift));
      record.end_ns += begin - record.begin_ns;
      record.begin_ns = begin;
    }
  };
  move(moved.trace.kernels);
  move(moved.trace.transfers);
  move(moved.trace.graphs);
  return moved;
}

}  // namespace launchgap::recording
