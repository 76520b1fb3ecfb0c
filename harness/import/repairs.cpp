#include "harness/import/repairs.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace launchgap::recording {
namespace {

using activity::Call;
using activity::Graph;
using activity::KernelRun;
using activity::Transfer;

/// FNV-1a, a number at a time.
class Hash {
 public:
  template <class... Numbers>
  explicit Hash(Numbers... numbers) {
    (add(static_cast<std::uint64_t>(numbers)), ...);
  }
  void add(std::uint64_t number) {
    value_ = (value_ ^ number) * 0x100000001B3u;
    value_ ^= value_ >> 29;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325u;
};

std::uint64_t hash_of(const Call& call) {
  return Hash(call.begin_ns, call.end_ns, call.correlation, call.thread, call.id).value();
}
std::uint64_t hash_of(const KernelRun& kernel) {
  return Hash(kernel.begin_ns, kernel.end_ns, kernel.correlation, kernel.stream, kernel.name)
      .value();
}
std::uint64_t hash_of(const Transfer& transfer) {
  return Hash(transfer.begin_ns,
              transfer.end_ns,
              transfer.correlation,
              transfer.stream,
              transfer.bytes,
              transfer.fill)
      .value();
}
std::uint64_t hash_of(const Graph& graph) {
  return Hash(graph.begin_ns, graph.end_ns, graph.correlation, graph.stream).value();
}

/// How many records are the copy of another one.
template <class Record>
std::uint64_t copies_in(const std::vector<Record>& records) {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(records.size());
  for (const Record& record : records) {
    if (has_times(record)) hashes.push_back(hash_of(record));
  }
  std::ranges::sort(hashes);
  std::uint64_t copies = 0;
  for (std::size_t i = 1; i < hashes.size(); ++i) copies += hashes[i] == hashes[i - 1] ? 1 : 0;
  return copies;
}

template <class Record>
void drop(std::vector<Record>& records) {
  std::unordered_set<std::uint64_t> seen;
  std::erase_if(records, [&](const Record& record) {
    return has_times(record) && !seen.insert(hash_of(record)).second;
  });
}

}  // namespace

void drop_copies(Recording& recording) {
  constexpr std::uint64_t kFew = 10, kLeastOf = 100, kMostOf = 4;
  for (Process& process : recording.processes) {
    activity::Trace& trace = process.trace;
    const auto look = [&](auto& records, std::string_view what) {
      const std::uint64_t copies = copies_in(records);
      const std::uint64_t all = records.size();
      const bool many = copies * kMostOf >= all || (copies >= kFew && copies * kLeastOf >= all);
      if (copies == 0 || !many) return;
      drop(records);
      recording.leave_out(what, copies);
    };
    look(trace.calls, "calls that are in the file more than once");
    look(trace.kernels, "kernels that are in the file more than once");
    look(trace.transfers, "copies and fills that are in the file more than once");
    look(trace.graphs, "graphs that are in the file more than once");
  }
}

std::uint64_t digest_of(const Process& process) {
  Hash all(process.pid, process.rank.value_or(-1));
  const auto add = [&](const auto& records) {
    for (const auto& record : records) all.add(hash_of(record));
    all.add(records.size());
  };
  add(process.trace.calls);
  add(process.trace.kernels);
  add(process.trace.transfers);
  add(process.trace.graphs);
  for (const Stream& stream : process.streams) all.add(stream.gpu);
  return all.value();
}

// --- Launches that are captured into a graph ---

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

// --- Times that cannot be ---

namespace {

constexpr std::int64_t kFarAway = std::int64_t{86'400} * 1'000'000'000;

/// Of records with begins and ends, the first and the last that can be.
std::pair<std::int64_t, std::int64_t> usual_times(std::vector<std::int64_t> times) {
  constexpr std::size_t kFewest = 20, kOneOf = 100;  // of ten records, each with two times
  std::pair<std::int64_t, std::int64_t> usual{0, std::numeric_limits<std::int64_t>::max()};
  if (times.size() < kFewest) return usual;
  std::ranges::sort(times);
  // Both times of one record are away, and those of more only of many records.
  const std::size_t most = 2 * std::max<std::size_t>(1, times.size() / 2 / kOneOf);
  for (std::size_t n = 1; n <= most; ++n) {
    const std::size_t last = times.size() - n - 1;
    if (times[n] - times[n - 1] >= kFarAway) usual.first = times[n];
    if (times[last + 1] - times[last] >= kFarAway) usual.second = times[last];
  }
  return usual;
}

template <class... Records>
std::uint64_t forget(Records&... records) {
  std::vector<std::int64_t> times;
  const auto add = [&](const auto& all) {
    for (const auto& record : all) {
      if (has_times(record)) times.insert(times.end(), {record.begin_ns, record.end_ns});
    }
  };
  (add(records), ...);
  const auto usual = usual_times(std::move(times));  // Clang 14 captures no structured binding
  std::uint64_t strays = 0;
  const auto drop = [&](auto& all) {
    for (auto& record : all) {
      if (!has_times(record) || (record.begin_ns >= usual.first && record.end_ns <= usual.second))
        continue;
      record.begin_ns = record.end_ns = 0;
      ++strays;
    }
  };
  (drop(records), ...);
  return strays;
}

}  // namespace

void forget_stray_times(Recording& recording) {
  for (Process& process : recording.processes) {
    activity::Trace& trace = process.trace;
    // The clock of the GPU may be days ahead of the host's.
    recording.leave_out("times of calls that are a day or more from all others",
                        forget(trace.calls));
    recording.leave_out("times of work that are a day or more from all others",
                        forget(trace.kernels, trace.transfers, trace.graphs));
  }
}

}  // namespace launchgap::recording
