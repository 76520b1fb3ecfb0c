#include "harness/import/stretches.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "harness/import/call_names.h"
#include "harness/import/cover.h"
#include "harness/import/steps.h"

namespace launchgap::recording {
namespace {

/// When what ran on a GPU, and when the program loaded data.
class DividedWork {
 public:
  DividedWork(const Process& process, std::uint64_t gpu, const GpuGaps& gaps) : gaps_(gaps) {
    const activity::Trace& trace = process.trace;
    std::vector<bool> collective;
    for (const std::string& name : trace.names()) collective.push_back(is_collective(name));
    const auto add = [&](const auto& record, auto&... covers) {
      if (has_times(record) && process.streams[record.stream].gpu == gpu)
        (covers.add(record.begin_ns, record.end_ns), ...);
    };
    for (const activity::KernelRun& kernel : trace.kernels) {
      if (collective[kernel.name]) {
        add(kernel, all_);
      } else {
        add(kernel, kernels_, with_copies_, with_input_, all_);
      }
    }
    for (const activity::Graph& graph : trace.graphs)
      add(graph, kernels_, with_copies_, with_input_, all_);
    for (const activity::Transfer& transfer : trace.transfers) {
      if (transfer.from_host) {
        add(transfer, with_input_, all_);
      } else {
        add(transfer, with_copies_, with_input_, all_);
      }
    }
    std::vector<bool> loading;
    for (const std::string& name : trace.names()) loading.push_back(loads_data(name));
    for (const Range& range : process.ranges) {
      if (loading[range.name] && has_times(range)) loading_.add(range.begin_ns, range.end_ns);
    }
    for (Cover* const cover : {&kernels_, &with_copies_, &with_input_, &all_, &loading_})
      cover->build();
  }

  /// Adds a stretch, less the time in which only collectives ran.
  void add(std::int64_t from_ns, std::int64_t to_ns, StretchParts& parts) const {
    std::array<std::int64_t, kStretchParts.size()> own{};
    const auto part = [&own](StretchPart which) -> std::int64_t& {
      return own[static_cast<std::size_t>(which)];
    };
    if (to_ns > from_ns) {
      const std::int64_t kernels = kernels_.within(from_ns, to_ns);
      const std::int64_t with_copies = with_copies_.within(from_ns, to_ns);
      const std::int64_t with_input = with_input_.within(from_ns, to_ns);
      const Idleness idle = gaps_.within(from_ns, to_ns);
      const std::int64_t loading = gaps_.program_in(loading_, from_ns, to_ns);
      part(StretchPart::kernels) = kernels;
      part(StretchPart::copies) = with_copies - kernels;
      part(StretchPart::input) = with_input - with_copies + loading;
      part(StretchPart::program) = idle.of(IdleCause::program) - loading;
      part(StretchPart::launches) = idle.of(IdleCause::launch);
      part(StretchPart::waits) = idle.of(IdleCause::waiting);
      part(StretchPart::allocations) = idle.of(IdleCause::allocating);
      part(StretchPart::calls) = idle.of(IdleCause::calling);
      part(StretchPart::queued) = idle.of(IdleCause::queued);
      // Also before the GPU's first work and after its last.
      const std::int64_t collectives = all_.within(from_ns, to_ns) - with_input;
      part(StretchPart::unknown) =
          to_ns - from_ns - collectives - with_input - idle.idle() + idle.of(IdleCause::unknown);
    }
    for (std::size_t i = 0; i < own.size(); ++i) parts.ns[i].push_back(own[i]);
  }

 private:
  const GpuGaps& gaps_;
  Cover kernels_, with_copies_, with_input_, all_, loading_;
};

}  // namespace

bool loads_data(std::string_view range) {
  std::string letters;
  for (const char c : range.substr(0, 100)) {
    if (std::isalpha(static_cast<unsigned char>(c)))
      letters.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  constexpr std::string_view kNames[] = {
      "dataload", "loaddata", "loadbatch", "nextbatch", "getbatch", "fetchbatch", "inputpipeline"};
  return std::ranges::any_of(
      kNames, [&](std::string_view name) { return letters.find(name) != std::string::npos; });
}

std::vector<CollectiveRecord> collectives_of(const Process& process,
                                             std::uint64_t gpu,
                                             const GpuGaps& gaps) {
  std::vector<const activity::KernelRun*> found;
  for (const activity::KernelRun& kernel : process.trace.kernels) {
    if (process.streams[kernel.stream].gpu == gpu && has_times(kernel) &&
        is_collective(process.trace.name(kernel.name)))
      found.push_back(&kernel);
  }
  if (found.empty()) return {};
  std::ranges::stable_sort(
      found, {}, [](const activity::KernelRun* kernel) { return kernel->begin_ns; });
  const DividedWork work(process, gpu, gaps);
  std::map<std::uint32_t, CollectiveRecord> by_name;
  std::int64_t ended_ns = found.front()->begin_ns;
  for (const activity::KernelRun* const kernel : found) {
    CollectiveRecord& own = by_name[kernel->name];
    own.name = process.trace.name(kernel->name);
    own.ns.push_back(kernel->end_ns - kernel->begin_ns);
    work.add(ended_ns, kernel->begin_ns, own.before);
    ended_ns = std::max(ended_ns, kernel->end_ns);
  }
  std::vector<CollectiveRecord> records;
  for (auto& [name, own] : by_name) records.push_back(std::move(own));
  return records;
}

StretchParts step_parts(const Process& process,
                        std::uint64_t gpu,
                        const GpuGaps& gaps,
                        std::string_view step_name) {
  StretchParts parts;
  const std::vector<Step> steps = steps_of(process, step_name);
  if (steps.empty()) return parts;
  const DividedWork work(process, gpu, gaps);
  for (const Step& step : steps) work.add(step.begin_ns, step.end_ns, parts);
  return parts;
}

}  // namespace launchgap::recording
