#include "harness/measure/thread_watch.h"

#include <algorithm>
#include <cmath>
#include <sched.h>
#include <sys/resource.h>
#include <utility>

#include "harness/core/metric.h"
#include "harness/stats/stats.h"

namespace launchgap {

ThreadCounters read_thread_counters() {
  ThreadCounters now;
  rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) == 0) {
    now.voluntary = static_cast<std::uint64_t>(usage.ru_nvcsw);
    now.involuntary = static_cast<std::uint64_t>(usage.ru_nivcsw);
    now.faults = static_cast<std::uint64_t>(usage.ru_minflt + usage.ru_majflt);
  }
  now.cpu = sched_getcpu();
  return now;
}

bool is_watched(std::string_view metric) {
  const Metric* const known = find_metric(metric);
  return known && known->source == "host_clock" && known->unit == "ns" && metric != "cpu_ns";
}

ThreadWatch::ThreadWatch(const std::vector<std::string_view>& metrics,
                         Read read,
                         std::function<std::int64_t()> now)
    : read_(std::move(read)), now_(std::move(now)) {
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (is_watched(metrics[i])) watched_.push_back(i);
  }
}

void ThreadWatch::begin_block(const Block& block) {
  slow_.assign(block.capacity(), {});
  slow_.clear();
  unjudged_.assign(kLearnedFrom, {});
  unjudged_.clear();
  usual_ = {};
  last_ended_ns_ = 0;
  if (!watched_.empty()) events_since_the_last_look();
}

void ThreadWatch::look(const Block& block) {
  if (watched_.empty()) return;
  const std::int64_t ended_ns = now_();
  const std::size_t i = block.size() - 1;
  const std::int64_t pause = last_ended_ns_ > 0 ? block.starts_ns()[i] - last_ended_ns_ : 0;
  WatchedSample watched{i, std::max<std::int64_t>(0, pause), events_since_the_last_look()};
  watched.events.pauses = pause >= kPauseNs;
  last_ended_ns_ = ended_ns;
  if (!limits_.empty()) return keep(block, watched);
  unjudged_.push_back(watched);
  if (unjudged_.size() == kLearnedFrom) learn(block);
}

void ThreadWatch::end_block(const Block& block) {
  if (!watched_.empty() && block.size() > 0) learn(block);
}

/// What comes before a limit is known is judged when it is.
void ThreadWatch::learn(const Block& block) {
  limits_.clear();
  for (const std::size_t metric : watched_) {
    std::vector<double> values;
    for (const double value : block.values(metric)) {
      if (std::isfinite(value)) values.push_back(value);
    }
    limits_.push_back(kLonger * stats::quantile_in_place(values, 0.5).value_or(INFINITY));
  }
  for (const WatchedSample& watched : std::exchange(unjudged_, {})) keep(block, watched);
}

void ThreadWatch::keep(const Block& block, WatchedSample watched) {
  if (is_long(block, watched.sample)) {
    slow_.push_back(watched);
  } else {
    usual_.count(watched.events);
  }
}

bool ThreadWatch::is_long(const Block& block, std::size_t sample) const {
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    if (block.values(watched_[i])[sample] > limits_[i]) return true;
  }
  return false;
}

ThreadEvents ThreadWatch::events_since_the_last_look() {
  const ThreadCounters now = read_();
  const ThreadCounters before = std::exchange(last_, now);
  return {1,
          now.voluntary - before.voluntary,
          now.involuntary - before.involuntary,
          now.faults - before.faults,
          now.cpu != before.cpu ? std::uint64_t{1} : 0,
          0};
}

}  // namespace launchgap
