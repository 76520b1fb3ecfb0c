#include "harness/injected/record_encoder.h"

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace launchgap::injected {
namespace {

using namespace cupti::abi;

template <class Record>
const Record& as(const Activity* activity) {
  return *reinterpret_cast<const Record*>(activity);
}

std::size_t mix(std::size_t sum, std::uint64_t number) {
  return (sum ^ number) * 0x9E3779B97F4A7C15u;
}

}  // namespace

std::size_t RecordEncoder::Hash::operator()(const Place& place) const {
  return mix(mix(mix(1, place.device), place.context), place.stream);
}

std::size_t RecordEncoder::Hash::operator()(const Kernel& kernel) const {
  std::size_t sum = mix(1, kernel.name);
  for (const std::int32_t extent : kernel.extents)
    sum = mix(sum, static_cast<std::uint32_t>(extent));
  return sum;
}

void RecordEncoder::encode(std::uint8_t* buffer, std::size_t valid_bytes) {
  Activity* record = nullptr;
  for (;;) {
    const Result result = cupti_.cuptiActivityGetNextRecord(buffer, valid_bytes, &record);
    if (result == kMaxLimitReached) return;
    if (result != kSuccess) {
      ++file_.header.unknown;
      return;
    }
    switch (record->kind) {
      case kDriverApi:
        call(as<ApiActivity>(record), false);
        break;
      case kRuntimeApi:
        call(as<ApiActivity>(record), true);
        break;
      case kConcurrentKernel:
        kernel(as<KernelActivity>(record));
        break;
      case kMemcpy:
        transfer(as<TransferActivity>(record),
                 is_from_host(as<TransferActivity>(record)) ? RawTag::copy_from_host
                 : is_to_host(as<TransferActivity>(record)) ? RawTag::copy_to_host
                                                            : RawTag::copy);
        break;
      case kMemset:
        transfer(as<TransferActivity>(record), RawTag::fill);
        break;
      case kOverhead:
        overhead(record);
        break;
      case kSynchronization: {
        const auto& wait = as<SynchronizationActivity>(record);
        file_.begin(RawTag::wait);
        times(wait.start, wait.end, wait.correlation);
        file_.number(wait.type);
        break;
      }
      case kMemory2:
        memory(as<MemoryActivity>(record));
        break;
      case kGraphTrace: {
        const auto& graph = as<GraphActivity>(record);
        const std::uint32_t place = place_index({graph.device, graph.context, graph.stream});
        file_.begin(RawTag::graph);
        times(graph.start, graph.end, graph.correlation);
        file_.number(place);
        file_.number(graph.graph);
        break;
      }
      default:
        ++file_.header.unknown;
    }
  }
}

void RecordEncoder::times(std::uint64_t start, std::uint64_t end, std::uint32_t correlation) {
  file_.time(start);
  file_.signed_number(static_cast<std::int64_t>(end - start));
  file_.correlation(correlation);
}

void RecordEncoder::call(const ApiActivity& api, bool runtime) {
  if (api.call >= kMostCalls || !kept_calls_[runtime].test(api.call)) return;
  const std::uint32_t thread = thread_index(api.thread);
  const bool failed = api.return_value != 0;
  file_.begin(runtime ? (failed ? RawTag::failed_runtime_call : RawTag::runtime_call)
                      : (failed ? RawTag::failed_call : RawTag::call));
  times(api.start, api.end, api.correlation);
  file_.number(thread);
  file_.number(api.call);
}

void RecordEncoder::kernel(const KernelActivity& kernel) {
  const std::uint32_t place = place_index({kernel.device, kernel.context, kernel.stream});
  const std::uint32_t index = kernel_index(kernel);
  file_.begin(RawTag::kernel_run);
  times(kernel.start, kernel.end, kernel.correlation);
  file_.number(place);
  file_.number(index);
}

void RecordEncoder::transfer(const TransferActivity& activity, RawTag tag) {
  const std::uint32_t place = place_index({activity.device, activity.context, activity.stream});
  file_.begin(tag);
  times(activity.start, activity.end, activity.correlation);
  file_.number(place);
  file_.number(activity.bytes);
}

void RecordEncoder::overhead(const Activity* record) {
  const auto& overhead = as<OverheadActivity>(record);
  std::uint32_t correlation = 0;
  if (cupti_.version >= kFirstWithOverheadCorrelation) {
    const auto& newer = as<OverheadActivity3>(record);
    correlation = newer.correlation;
    if (cupti_.version >= kFirstWithOverheadData) std::free(newer.data);
  }
  file_.begin(RawTag::overhead);
  times(overhead.start, overhead.end, correlation);
  file_.number(overhead.overhead);
}

void RecordEncoder::memory(const MemoryActivity& memory) {
  describe_gpu(memory.device);
  file_.begin(RawTag::memory);
  file_.time(memory.timestamp);
  file_.number(memory.address);
  file_.number(memory.bytes);
  file_.number(memory.pool_type != 0 ? memory.pool : 0);
  file_.correlation(memory.correlation);
  file_.number(memory.memory_kind);
  file_.number(memory.operation == kRelease ? 1 : 0);
  file_.number(memory.device);
}

void RecordEncoder::range(std::int64_t begin_ns,
                          std::int64_t end_ns,
                          std::uint32_t thread,
                          const char* name,
                          std::size_t length) {
  const std::uint32_t of = thread_index(thread);
  const std::uint32_t named = name_index(name, length);
  file_.begin(RawTag::range);
  file_.time(static_cast<std::uint64_t>(begin_ns));
  file_.signed_number(end_ns - begin_ns);
  file_.number(of);
  file_.number(named);
}

std::uint32_t RecordEncoder::thread_index(std::uint32_t id) {
  if (id == last_thread_ && last_thread_index_ != ~0u) return last_thread_index_;
  const auto [entry, added] = threads_.try_emplace(id, threads_.size());
  if (added) {
    file_.begin(RawTag::thread);
    file_.number(id);
  }
  last_thread_ = id;
  return last_thread_index_ = entry->second;
}

std::uint32_t RecordEncoder::place_index(const Place& place) {
  if (place == last_place_ && last_place_index_ != ~0u) return last_place_index_;
  const auto [entry, added] = places_.try_emplace(place, places_.size());
  if (added) {
    describe_gpu(place.device);
    file_.begin(RawTag::stream);
    file_.number(place.device);
    file_.number(place.context);
    file_.number(place.stream);
  }
  last_place_ = place;
  return last_place_index_ = entry->second;
}

/// By its text: whoever unloads a module may put another name where the last one was.
std::uint32_t RecordEncoder::name_index(const char* name, std::size_t length) {
  const std::string_view text(name, std::min(length, RawFile::kLongestText));
  if (last_name_index_ != ~0u && text == last_name_) return last_name_index_;
  last_name_ = text;
  const auto [entry, added] = names_.try_emplace(last_name_, names_.size());
  if (added) {
    file_.begin(RawTag::name);
    file_.text(text.data(), text.size());
  }
  return last_name_index_ = entry->second;
}

std::uint32_t RecordEncoder::kernel_index(const KernelActivity& kernel) {
  const char* const name = kernel.name ? kernel.name : "(unnamed)";
  const Kernel key{name_index(name, std::strlen(name)),
                   {kernel.grid_x,
                    kernel.grid_y,
                    kernel.grid_z,
                    kernel.block_x,
                    kernel.block_y,
                    kernel.block_z}};
  if (key == last_kernel_ && last_kernel_index_ != ~0u) return last_kernel_index_;
  const auto [entry, added] = kernels_.try_emplace(key, kernels_.size());
  if (added) {
    file_.begin(RawTag::kernel);
    file_.number(key.name);
    for (const std::int32_t extent : key.extents) file_.signed_number(extent);
  }
  last_kernel_ = key;
  return last_kernel_index_ = entry->second;
}

/// What the driver says of it, the first time that a record names it.
void RecordEncoder::describe_gpu(std::uint32_t number) {
  constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_…
  if (number >= gpus_.size() || gpus_.test(number)) return;
  gpus_.set(number);
  int device = 0, major = 0, minor = 0;
  char name[256] = {};
  std::size_t bytes = 0;
  unsigned char identity[16] = {};
  if (driver_.get && driver_.get(&device, static_cast<int>(number)) == 0) {
    if (driver_.name && driver_.name(name, sizeof name - 1, device) != 0) name[0] = '\0';
    if (driver_.attribute && (driver_.attribute(&major, kMajor, device) != 0 ||
                              driver_.attribute(&minor, kMinor, device) != 0))
      major = minor = 0;
    if (driver_.memory && driver_.memory(&bytes, device) != 0) bytes = 0;
    if (driver_.uuid && driver_.uuid(identity, device) != 0)
      std::memset(identity, 0, sizeof identity);
  }
  file_.begin(RawTag::gpu);
  file_.number(number);
  file_.number(static_cast<unsigned>(10 * major + minor));
  file_.number(bytes);
  file_.bytes(identity, sizeof identity);
  file_.text(name, std::strlen(name));
}

}  // namespace launchgap::injected
