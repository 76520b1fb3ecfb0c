#include "harness/import/captured_launches.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace launchgap::recording {

void forget_captured_launches(Process& process) {
  using activity::Purpose;
  std::vector<activity::Call>& calls = process.trace.calls;
  const auto is = [&](const activity::Call& call, std::string_view what) {
    return process.trace.name(call.id).find(what) != std::string::npos;
  };
  std::vector<std::uint32_t> captures;  // calls that begin or end one, by time
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    if (calls[i].purpose == Purpose::other &&
        (is(calls[i], "BeginCapture") || is(calls[i], "EndCapture")))
      captures.push_back(i);
  }
  if (captures.empty()) return;
  std::ranges::sort(captures, {}, [&](std::uint32_t i) { return calls[i].begin_ns; });
  std::map<std::uint32_t, std::vector<std::pair<std::int64_t, std::int64_t>>> spans;  // by thread
  for (const std::uint32_t i : captures) {
    auto& own = spans[calls[i].thread];
    if (is(calls[i], "Begin")) {
      own.emplace_back(calls[i].begin_ns, std::numeric_limits<std::int64_t>::max());
    } else if (!own.empty()) {
      own.back().second = std::min(own.back().second, calls[i].end_ns);
    }
  }
  std::unordered_set<std::uint32_t> with_kernel;
  for (const activity::KernelRun& kernel : process.trace.kernels)
    with_kernel.insert(kernel.correlation);
  for (activity::Call& call : calls) {
    if (call.purpose != Purpose::launch || with_kernel.contains(call.correlation)) continue;
    const auto own = spans.find(call.thread);
    if (own == spans.end()) continue;
    const auto after = std::ranges::upper_bound(
        own->second, call.begin_ns, {}, &std::pair<std::int64_t, std::int64_t>::first);
    if (after != own->second.begin() && call.begin_ns < std::prev(after)->second)
      call.purpose = Purpose::other;
  }
}

}  // namespace launchgap::recording
