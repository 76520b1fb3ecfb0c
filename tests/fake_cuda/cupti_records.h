// Activity records, laid out as the described version of CUPTI does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "harness/trace/cupti/abi.h"
#include "tests/fake_cuda/listener.h"

namespace launchgap::fake {

/// Bytes of a record; 0 when that version has no such kind, or the fake makes none.
std::size_t record_bytes(std::uint32_t kind, std::uint32_t version);

/// What is wrong with a kernel's record on purpose.
enum class Spoilt { no, zero_timestamps, inverted, early, lost };

/// A kernel whose record waits for its times.
struct PendingKernel {
  std::shared_ptr<const KernelTimes> times;
  std::int64_t clock_ns = 0;    // from CLOCK_MONOTONIC to the records' time
  std::uint64_t api_begin = 0;  // in the records' time
  Spoilt spoilt = Spoilt::no;
  double error_ns = 0;    // of the conversion of the device's clock
  double quantum_ns = 0;  // of that clock; 0: nanoseconds
  std::size_t begin_at = offsetof(cupti::abi::KernelActivity, start);  // in the record
  std::size_t end_at = offsetof(cupti::abi::KernelActivity, end);

  bool complete(double now_ns) const { return times->known() && times->end_ns() <= now_ns; }
};

struct Record {
  static constexpr std::size_t kMostBytes = 224;

  alignas(8) std::array<unsigned char, kMostBytes> bytes{};
  std::size_t size = 0;
  std::shared_ptr<const PendingKernel> kernel;  // of kernels
  void* owned = nullptr;                        // by whoever reads the record

  /// `content` with zeroes behind it, as large as such a record is.
  template <typename T>
  static Record of(const T& content, std::uint32_t version) {
    static_assert(sizeof content <= kMostBytes);
    Record record;
    __builtin_memcpy(record.bytes.data(), &content, sizeof content);
    std::uint32_t kind = 0;
    __builtin_memcpy(&kind, &content, sizeof kind);
    record.size = record_bytes(kind, version);
    return record;
  }

  template <typename T>
  void set(std::size_t offset, T value) {
    __builtin_memcpy(bytes.data() + offset, &value, sizeof value);
  }
};

/// A time of CLOCK_MONOTONIC in the records' time.
std::uint64_t timestamp(double monotonic_ns, std::int64_t clock_ns);

/// Fills in the times of a kernel's record as far as they are known now.
void complete_kernel(unsigned char* record, const PendingKernel& kernel, double now_ns);

/// What belongs to the calling thread, made when it is first asked for. `all` owns it: other
/// libraries may call the driver after thread_local destructors ran.
template <typename T>
T& of_this_thread(std::mutex& mutex, std::vector<std::unique_ptr<T>>& all) {
  thread_local T* own = nullptr;
  if (own == nullptr) {
    const std::lock_guard lock(mutex);
    own = all.emplace_back(std::make_unique<T>()).get();
  }
  return *own;
}

}  // namespace launchgap::fake
