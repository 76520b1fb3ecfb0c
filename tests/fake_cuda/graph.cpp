#include "tests/fake_cuda/graph.h"

#include <algorithm>
#include <string_view>

#include "tests/fake_cuda/process.h"

namespace launchgap::fake {

bool same_topology(const GraphNodes& one, const GraphNodes& other) {
  return std::ranges::equal(one, other, [](const GraphNode& a, const GraphNode& b) {
    const auto& first = a.work.kernel;
    const auto& second = b.work.kernel;
    if (a.after != b.after || first.has_value() != second.has_value()) return false;
    return !first || std::string_view(first->name) == second->name;
  });
}

void Capture::add(Work work, std::vector<std::size_t>& after) {
  nodes.push_back({std::move(work), after});
  after = {nodes.size() - 1};
}

bool Capture::joined(const std::vector<std::size_t>& last) const {
  std::vector<bool> reached(nodes.size(), false);
  for (const std::size_t node : last) reached[node] = true;
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (!reached[i]) return false;
    for (const std::size_t before : nodes[i].after) reached[before] = true;
  }
  return true;
}

void GraphRun::plan() {
  if (!spans_.empty()) return;
  const DeviceDescription& device = context_.description;
  std::mt19937_64 random(seed_);
  spans_.resize(nodes_->size());
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const auto& [work, after] = (*nodes_)[i];
    double begin = 0;
    double ahead = 0;
    for (const std::size_t before : after) ahead = std::max(ahead, spans_[before].end_ns);
    if (!after.empty()) {
      const double gap = context_.slowness() * device.launch.graph->node_ns(random);
      begin = std::max(0.0, ahead + gap - work.overlap_ns);
    }
    const double length = context_.work_ns(work, random);
    spans_[i] = {begin, std::max(begin + length, ahead)};
    duration_ns_ = std::max(duration_ns_, spans_[i].end_ns);
  }
}

double GraphRun::duration_ns() {
  plan();
  return duration_ns_;
}

void GraphRun::settle(double begin_ns) {
  if (times.empty()) return;
  plan();
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    if (times[i]) times[i]->set(begin_ns + spans_[i].begin_ns, begin_ns + spans_[i].end_ns);
  }
}

bool GraphRun::has_effect() const {
  return std::ranges::any_of(
      *nodes_, [](const GraphNode& node) { return node.work.operation.has_effect(); });
}

bool GraphRun::polled() const {
  return std::ranges::any_of(*nodes_, [](const GraphNode& node) { return node.work.polled; });
}

void GraphRun::execute() const {
  for (const auto& node : *nodes_) {
    if (node.work.operation.has_effect()) process_.execute(context_, node.work.operation);
  }
}

}  // namespace launchgap::fake
