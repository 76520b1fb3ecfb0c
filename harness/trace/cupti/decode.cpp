#include "harness/trace/cupti/decode.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "harness/trace/cupti/traced_calls.h"

namespace launchgap::cupti {
namespace {

using activity::Purpose;
using activity::Trace;

template <class Record>
const Record& as(const abi::Activity* activity) {
  return *reinterpret_cast<const Record*>(activity);
}

bool is_one_of(std::uint32_t call, std::span<const std::uint32_t> calls) {
  return std::ranges::find(calls, call) != calls.end();
}

std::int64_t time_of(std::uint64_t nanoseconds) {
  return static_cast<std::int64_t>(nanoseconds);
}

}  // namespace

activity::OverheadKind overhead_kind(abi::OverheadKind kind) {
  using activity::OverheadKind;
  constexpr std::pair<abi::OverheadKind, OverheadKind> kKinds[] = {
      {abi::kDriverCompiler, OverheadKind::compiler},
      {abi::kBufferFlush, OverheadKind::buffer_flush},
      {abi::kInstrumentation, OverheadKind::instrumentation},
      {abi::kResource, OverheadKind::resource},
      {abi::kModuleLoading, OverheadKind::module_loading},
      {abi::kLazyFunctionLoading, OverheadKind::lazy_function_loading},
      {abi::kCommandBufferFull, OverheadKind::command_buffer_full},
      {abi::kBufferRequest, OverheadKind::buffer_request}};
  for (const auto& [known, meant] : kKinds) {
    if (known == kind) return meant;
  }
  return OverheadKind::other;
}

namespace {

void add_call(const abi::ApiActivity& api, activity::Domain domain, Trace& trace) {
  const Purpose purpose =
      domain == activity::Domain::driver ? driver_purpose(api.call) : runtime_purpose(api.call);
  trace.calls.push_back({time_of(api.start),
                         time_of(api.end),
                         api.correlation,
                         api.thread,
                         api.call,
                         domain,
                         purpose});
}

void add_kernel(const abi::KernelActivity& kernel, Trace& trace) {
  trace.kernels.push_back({time_of(kernel.start),
                           time_of(kernel.end),
                           kernel.correlation,
                           kernel.stream,
                           trace.name_index(kernel.name),
                           {kernel.grid_x, kernel.grid_y, kernel.grid_z},
                           {kernel.block_x, kernel.block_y, kernel.block_z}});
}

void add_overhead(const abi::Activity* record, std::uint32_t version, Trace& trace) {
  const auto& overhead = as<abi::OverheadActivity>(record);
  std::uint32_t correlation = 0;
  if (version >= abi::kFirstWithOverheadCorrelation) {
    const auto& newer = as<abi::OverheadActivity3>(record);
    correlation = newer.correlation;
    if (version >= abi::kFirstWithOverheadData) std::free(newer.data);
  }
  trace.overheads.push_back({time_of(overhead.start),
                             time_of(overhead.end),
                             correlation,
                             overhead_kind(overhead.overhead)});
}

void add_memory(const abi::MemoryActivity& memory, Trace& trace) {
  trace.memory.push_back({time_of(memory.timestamp),
                          memory.address,
                          memory.bytes,
                          memory.pool_type != 0 ? memory.pool : 0,
                          memory.correlation,
                          memory.memory_kind,
                          memory.operation == abi::kRelease,
                          memory.device});
}

}  // namespace

Purpose driver_purpose(std::uint32_t call) {
  if (is_one_of(call, kDriverLaunches)) return Purpose::launch;
  if (!is_one_of(call, kDriverAllocations)) return Purpose::other;
  const bool takes =
      call == abi::kMemAlloc || call == abi::kMemAllocAsync || call == abi::kMemAllocAsyncPtsz;
  return takes ? Purpose::allocate : Purpose::release;
}

Purpose runtime_purpose(std::uint32_t call) {
  return is_one_of(call, kRuntimeLaunches) ? Purpose::launch : Purpose::other;
}

void decode(const RecordReader& reader,
            std::uint8_t* buffer,
            std::size_t valid_bytes,
            Trace& trace) {
  abi::Activity* record = nullptr;
  for (;;) {
    const abi::Result result = reader.next(buffer, valid_bytes, &record);
    if (result == abi::kMaxLimitReached) return;
    if (result != abi::kSuccess) {
      ++trace.unknown;
      return;
    }
    switch (record->kind) {
      case abi::kDriverApi:
        add_call(as<abi::ApiActivity>(record), activity::Domain::driver, trace);
        break;
      case abi::kRuntimeApi:
        add_call(as<abi::ApiActivity>(record), activity::Domain::runtime, trace);
        break;
      case abi::kConcurrentKernel:
        add_kernel(as<abi::KernelActivity>(record), trace);
        break;
      case abi::kOverhead:
        add_overhead(record, reader.version, trace);
        break;
      case abi::kSynchronization: {
        const auto& wait = as<abi::SynchronizationActivity>(record);
        trace.waits.push_back(
            {time_of(wait.start), time_of(wait.end), wait.correlation, wait.type});
        break;
      }
      case abi::kMemory2:
        add_memory(as<abi::MemoryActivity>(record), trace);
        break;
      case abi::kGraphTrace: {
        const auto& graph = as<abi::GraphActivity>(record);
        trace.graphs.push_back(
            {time_of(graph.start), time_of(graph.end), graph.correlation, graph.graph});
        break;
      }
      default:
        ++trace.unknown;
    }
  }
}

namespace {

/// The toolkits that came with versions below 130000. Source: cupti_version.h of CUDA 13.0.
constexpr std::pair<std::uint32_t, const char*> kToolkits[] = {{13, "11.0"},
                                                               {14, "11.1"},
                                                               {15, "11.2 to 11.4"},
                                                               {16, "11.5"},
                                                               {17, "11.6"},
                                                               {18, "11.8"},
                                                               {19, "12.0"},
                                                               {20, "12.2"},
                                                               {21, "12.3"},
                                                               {22, "12.4"},
                                                               {23, "12.5"},
                                                               {24, "12.6"},
                                                               {26, "12.8"},
                                                               {27, "12.9"},
                                                               {28, "12.9.1"}};

}  // namespace

std::string version_text(std::uint32_t version) {
  if (version >= 100000) {
    return fmt::format("{}.{} (API {})", version / 10000, version / 100 % 100, version);
  }
  for (const auto& [api, toolkit] : kToolkits) {
    if (api == version) return fmt::format("{} (API {})", toolkit, version);
  }
  return fmt::format("API {}", version);
}

}  // namespace launchgap::cupti
