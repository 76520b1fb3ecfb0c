#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "harness/import/repairs.h"

namespace launchgap::recording {
namespace {

using activity::Call;
using activity::Purpose;

struct CaptureCall {
  std::int64_t at_ns;
  bool begins;
};

struct Span {
  std::int64_t begin_ns, end_ns;
};

/// Calls that begin or end a capture, by time: the one counts from its start, the other to its
/// own.
std::vector<CaptureCall> capture_calls(const activity::Trace& trace) {
  std::vector<CaptureCall> calls;
  for (const Call& call : trace.calls) {
    if (call.purpose != Purpose::other) continue;
    const std::string_view name = trace.name(call.id);
    if (name.ends_with("(failed)")) continue;
    if (name.find("StreamBeginCapture") != std::string_view::npos) {
      calls.push_back({call.begin_ns, true});
    } else if (name.find("StreamEndCapture") != std::string_view::npos) {
      calls.push_back({call.end_ns, false});
    }
  }
  std::ranges::stable_sort(calls, {}, &CaptureCall::at_ns);
  return calls;
}

/// When at least one stream was captured.
std::vector<Span> captures(const activity::Trace& trace) {
  std::vector<Span> spans;
  std::int64_t begin_ns = 0, last_end_ns = 0;
  int depth = 0;
  for (const CaptureCall& call : capture_calls(trace)) {
    if (call.begins) {
      if (depth++ == 0) begin_ns = call.at_ns;
      continue;
    }
    if (depth == 0) continue;  // it began before the recording
    last_end_ns = call.at_ns;
    if (--depth == 0) spans.push_back({begin_ns, last_end_ns});
  }
  if (depth > 0 && last_end_ns > begin_ns) spans.push_back({begin_ns, last_end_ns});
  return spans;
}

}  // namespace

void forget_captured_launches(Process& process) {
  activity::Trace& trace = process.trace;
  if (trace.kernels.empty()) return;
  const std::vector<Span> spans = captures(trace);
  if (spans.empty()) return;
  std::unordered_set<std::uint32_t> with_kernel;
  for (const activity::KernelRun& kernel : trace.kernels) with_kernel.insert(kernel.correlation);
  for (Call& call : trace.calls) {
    if (call.purpose != Purpose::launch || with_kernel.contains(call.correlation)) continue;
    const auto after = std::ranges::upper_bound(spans, call.begin_ns, {}, &Span::begin_ns);
    if (after != spans.begin() && call.begin_ns < std::prev(after)->end_ns)
      call.purpose = Purpose::other;
  }
}

}  // namespace launchgap::recording
