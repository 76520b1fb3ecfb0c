#include <algorithm>
#include <unordered_set>
#include <vector>

#include "harness/import/repairs.h"

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

}  // namespace launchgap::recording
