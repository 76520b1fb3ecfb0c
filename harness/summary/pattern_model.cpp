#include <algorithm>
#include <deque>
#include <unordered_map>
#include <vector>

#include "harness/summary/replayed_steps.h"

namespace launchgap {
namespace {

class Walk {
 public:
  explicit Walk(const LaunchCosts& costs) : costs_(costs), streams_(kMostPatternStreams) {}

  double run(const Pattern& pattern) {
    for (const PatternOperation& one : pattern.operations) take(one);
    end_graph();
    for (const StreamTime& stream : streams_) {
      if (stream.used) wait_until(stream.ready_ns);
    }
    return host_ns_;
  }

 private:
  struct StreamTime {
    double ready_ns = 0;         // when all that it was given is done
    std::deque<double> ends_ns;  // of what it was given last
    bool used = false;
  };

  void take(const PatternOperation& one) {
    const bool of_graph = is_work(one.action) && one.number != 0;
    if (!of_graph || one.number != graph_) end_graph();
    host_ns_ += costs_.gap_factor * static_cast<double>(one.gap_ns);
    StreamTime& stream = streams_[one.stream];
    if (is_work(one.action)) {
      const bool begins = !of_graph || one.number != graph_;
      if (begins) call(one, stream);
      if (of_graph && begins) begin_graph(one, stream);
      return work(one, stream, begins);
    }
    switch (one.action) {
      case PatternAction::ahead:
        stream.ready_ns += costs_.kernel_factor * static_cast<double>(one.device_ns);
        stream.used = true;
        return;
      case PatternAction::wait:
        return wait_until(one.number == 0 ? stream.ready_ns : events_[one.number]);
      case PatternAction::wait_all: {
        double last = 0;
        for (const StreamTime& other : streams_) last = std::max(last, other.ready_ns);
        return wait_until(last);
      }
      case PatternAction::allocate:
      case PatternAction::allocate_pooled:
      case PatternAction::release:
        host_ns_ += costs_.allocation_ns.value_or(static_cast<double>(one.call_ns));
        return;
      case PatternAction::record_event:
        events_[one.number] = stream.ready_ns;
        return;
      case PatternAction::wait_event:
        stream.ready_ns = std::max(stream.ready_ns, events_[one.number]);
        return;
      default:
        return;
    }
  }

  void call(const PatternOperation& one, StreamTime& stream) {
    if (stream.ends_ns.size() >= kLaunchQueue) {
      host_ns_ = std::max(host_ns_, stream.ends_ns.front());
      stream.ends_ns.pop_front();
    }
    // A blocking copy's call lasted until its work was over.
    const double recorded = one.blocks ? 0 : static_cast<double>(one.call_ns);
    host_ns_ += costs_.call_ns.value_or(recorded);
    starts_ns_ = host_ns_ + costs_.start_ns;
  }

  /// Its works begin behind what the stream of the first has.
  void begin_graph(const PatternOperation& one, StreamTime& stream) {
    graph_ = one.number;
    graph_stream_ = one.stream;
    starts_ns_ = std::max(starts_ns_, stream.ready_ns);
    graph_ends_ns_ = 0;
  }
  void end_graph() {
    if (graph_ == 0) return;
    StreamTime& stream = streams_[graph_stream_];
    stream.ready_ns = std::max(stream.ready_ns, graph_ends_ns_);
    if (!stream.ends_ns.empty()) stream.ends_ns.back() = stream.ready_ns;
    graph_ = 0;
  }

  double length_of(const PatternOperation& one) const {
    const auto recorded = static_cast<double>(one.device_ns);
    return one.action == PatternAction::kernel
               ? costs_.kernel_factor * recorded + costs_.kernel_excess_ns
               : costs_.copy_factor * recorded;
  }

  void work(const PatternOperation& one, StreamTime& stream, bool begins) {
    stream.used = true;
    stream.ready_ns = std::max(stream.ready_ns, starts_ns_) + length_of(one);
    graph_ends_ns_ = std::max(graph_ends_ns_, stream.ready_ns);
    if (begins) stream.ends_ns.push_back(stream.ready_ns);
    if (stream.ends_ns.size() > kLaunchQueue) stream.ends_ns.pop_front();
    if (one.blocks) wait_until(stream.ready_ns);
  }

  void wait_until(double done_ns) {
    if (done_ns > host_ns_) host_ns_ = done_ns + costs_.wake_ns;
  }

  const LaunchCosts& costs_;
  std::vector<StreamTime> streams_;
  std::unordered_map<std::uint32_t, double> events_;
  double host_ns_ = 0, starts_ns_ = 0, graph_ends_ns_ = 0;
  std::uint32_t graph_ = 0, graph_stream_ = 0;
};

}  // namespace

LaunchCosts free_launches(double allocation_ns) {
  LaunchCosts costs;
  costs.call_ns = 0;
  costs.allocation_ns = allocation_ns;
  return costs;
}

LaunchCosts work_alone() {
  LaunchCosts costs = free_launches();
  costs.gap_factor = 0;
  return costs;
}

double modelled_ns(const Pattern& pattern, const LaunchCosts& costs) {
  return Walk(costs).run(pattern);
}

}  // namespace launchgap
