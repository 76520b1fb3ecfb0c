#include "harness/device/host/recorder.h"

namespace launchgap::host {
namespace {

/// Room for a block of any benchmark, so that recording seldom allocates.
constexpr std::size_t kRoom = 1 << 16;
constexpr std::uint32_t kPageableMemory = 1;

}  // namespace

Recorder::Recorder(Kinds kinds) : kinds_(kinds) {
  calls_.records.reserve(kRoom);
  if (kinds_.kernels) kernels_.records.reserve(kRoom);
  if (kinds_.everything) waits_.records.reserve(kRoom);
}

void Recorder::kernel(std::int64_t begin_ns,
                      std::int64_t end_ns,
                      std::uint32_t correlation,
                      const char* name,
                      std::int32_t blocks,
                      std::int32_t threads) {
  kernels_.add({{begin_ns, end_ns, correlation, 0, 0, {blocks, 1, 1}, {threads, 1, 1}}, name});
}

void Recorder::allocation(activity::Purpose purpose,
                          std::int64_t begin_ns,
                          std::int64_t end_ns,
                          const void* address,
                          std::size_t bytes) {
  const bool release = purpose == activity::Purpose::release;
  const std::uint32_t correlation = next_correlation();
  call({begin_ns,
        end_ns,
        correlation,
        0,
        release ? kRelease : kAllocate,
        activity::Domain::host,
        purpose});
  if (!kinds_.everything) return;
  memory_.add({end_ns,
               reinterpret_cast<std::uintptr_t>(address),
               bytes,
               0,
               correlation,
               kPageableMemory,
               release});
}

void Recorder::take(activity::Trace& trace) {
  const auto move_behind = [](auto& channel, auto& to) {
    const std::lock_guard lock(channel.mutex);
    to.insert(to.end(), channel.records.begin(), channel.records.end());
    channel.records.clear();
  };
  move_behind(calls_, trace.calls);
  move_behind(waits_, trace.waits);
  move_behind(memory_, trace.memory);
  const std::lock_guard lock(kernels_.mutex);
  for (NamedKernel& entry : kernels_.records) {
    entry.kernel.name = trace.name_index(entry.name);
    trace.kernels.push_back(entry.kernel);
  }
  kernels_.records.clear();
}

}  // namespace launchgap::host
