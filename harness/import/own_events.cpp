#include "harness/import/own_events.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/device/host/recorder.h"
#include "harness/import/call_names.h"
#include "harness/import/event_kinds.h"

namespace launchgap::recording {
namespace {

using activity::Domain;

template <class Event>
bool is_kept(const Event& event, const KeepsEvent& keeps) {
  const auto [begin_ns, end_ns] = times_of(event);
  return keeps(begin_ns, end_ns);
}

}  // namespace

std::string name_of_own_call(Domain domain, std::uint32_t id) {
  if (domain == Domain::host) {
    switch (id) {
      case host::kQueueLaunch:
        return "launch";
      case host::kAllocate:
        return "allocate";
      case host::kRelease:
        return "release";
      default:
        return fmt::format("call {}", id);
    }
  }
  return name_or_number(domain, id);
}

Process own_events(const activity::Trace& trace, std::uint64_t pid, const KeepsEvent& keeps) {
  Process process;
  process.pid = pid;
  const auto copy = [&](const auto& from, auto& to) {
    std::ranges::copy_if(
        from, std::back_inserter(to), [&](const auto& event) { return is_kept(event, keeps); });
  };
  copy(trace.calls, process.trace.calls);
  copy(trace.kernels, process.trace.kernels);
  copy(trace.transfers, process.trace.transfers);
  copy(trace.graphs, process.trace.graphs);
  copy(trace.overheads, process.trace.overheads);
  copy(trace.waits, process.trace.waits);
  copy(trace.memory, process.trace.memory);
  for (activity::Call& call : process.trace.calls) {
    call.thread = process.thread(std::to_string(call.thread));
    call.id = process.trace.name_index(name_of_own_call(call.domain, call.id).c_str());
  }
  for (activity::KernelRun& kernel : process.trace.kernels)
    kernel.name = process.trace.name_index(trace.name(kernel.name).c_str());
  for_each_work(process.trace, [&](auto& record) {
    record.stream = process.stream({0, 0, record.stream});
  });
  return process;
}

void keep_only(Process& process, const KeepsEvent& keeps) {
  for_each_kind([&]<class Event>() {
    std::erase_if(Kind<Event>::list(process),
                  [&](const Event& event) { return !is_kept(event, keeps); });
  });
}

}  // namespace launchgap::recording
