#include "tests/fake_cuda/cupti_records.h"

#include <cmath>

namespace launchgap::fake {

using namespace cupti::abi;

namespace {

struct Size {
  std::uint32_t since;  // version
  std::size_t bytes;
};

// Newest first. Source: cupti_version.h, cupti_activity.h and cupti_activity_deprecated.h of CUDA
// 13.0; what later versions append to kernels is invented.
constexpr Size kKernelSizes[] =
    {{130100, 224}, {130000, 216}, {19, 208}, {18, 200}, {17, 176}, {15, 168}, {0, 160}};
constexpr Size kMemcpySizes[] = {{26, 96}, {17, 88}, {14, 80}, {0, 72}};
constexpr Size kMemsetSizes[] = {{17, 88}, {14, 80}, {0, 72}};
constexpr Size kMemorySizes[] = {{24, 128}, {17, 120}, {15, 112}};
constexpr Size kOverheadSizes[] = {{22, 56}, {20, 48}, {0, 40}};
constexpr Size kSynchronizationSizes[] = {{26, 56}, {0, 40}};
constexpr Size kGraphSizes[] = {{21, 56}, {17, 48}};

template <std::size_t n>
std::size_t size_in(const Size (&sizes)[n], std::uint32_t version) {
  for (const auto& size : sizes) {
    if (version >= size.since) return size.bytes;
  }
  return 0;
}

bool is_kernel(const unsigned char* record) {
  std::uint32_t kind = 0;
  __builtin_memcpy(&kind, record, sizeof kind);
  return kind == kConcurrentKernel;
}

}  // namespace

std::size_t record_bytes(std::uint32_t kind, std::uint32_t version) {
  switch (kind) {
    case kDriverApi:
    case kRuntimeApi:
      return sizeof(ApiActivity);
    case kConcurrentKernel:
      return size_in(kKernelSizes, version);
    case kMemcpy:
      return size_in(kMemcpySizes, version);
    case kMemset:
      return size_in(kMemsetSizes, version);
    case kOverhead:
      return size_in(kOverheadSizes, version);
    case kSynchronization:
      return size_in(kSynchronizationSizes, version);
    case kMemory2:
      return size_in(kMemorySizes, version);
    case kGraphTrace:
      return size_in(kGraphSizes, version);
    default:
      return 0;
  }
}

std::uint64_t timestamp(double monotonic_ns, std::int64_t clock_ns) {
  return static_cast<std::uint64_t>(std::llround(monotonic_ns) + clock_ns);
}

void complete_kernel(unsigned char* record, const PendingKernel& kernel, double now_ns) {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  const auto& times = *kernel.times;
  const auto converted = [&](double ns) {
    const double seen = ns + kernel.error_ns;
    const double quantum = kernel.quantum_ns;
    return timestamp(quantum > 0 ? std::floor(seen / quantum) * quantum : seen, kernel.clock_ns);
  };
  if (times.known() && times.begin_ns() <= now_ns) {
    start = converted(times.begin_ns());
    if (times.end_ns() <= now_ns) end = converted(times.end_ns());
  }
  if (end != 0) {
    const std::uint64_t duration = end - start;
    switch (kernel.spoilt) {
      case Spoilt::no:
      case Spoilt::lost:
        break;
      case Spoilt::zero_timestamps:
        start = end = 0;
        break;
      case Spoilt::inverted:
        end = start - duration - 1;
        break;
      case Spoilt::early:
        constexpr std::uint64_t kEarly = 1'000'000;
        start = kernel.api_begin - kEarly;
        end = start + duration;
        break;
    }
  }
  __builtin_memcpy(record + kernel.begin_at, &start, sizeof start);
  __builtin_memcpy(record + kernel.end_at, &end, sizeof end);
  if (kernel.begin_at == offsetof(KernelActivity, start) && is_kernel(record)) {
    __builtin_memcpy(record + offsetof(KernelActivity, completed), &end, sizeof end);
  }
}

}  // namespace launchgap::fake
