// CUPTI's records as the entries of a raw recording.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "harness/injected/cupti_library.h"
#include "harness/injected/raw_file.h"

namespace launchgap::injected {

/// What the driver says of its GPUs. Looked up before the writer needs it: the loader may be held
/// by a thread that waits for the writer.
struct DriverFunctions {
  int (*get)(int* device, int ordinal) = nullptr;
  int (*name)(char* name, int room, int device) = nullptr;
  int (*attribute)(int* value, int attribute, int device) = nullptr;
  int (*memory)(std::size_t* bytes, int device) = nullptr;
  int (*uuid)(unsigned char* uuid, int device) = nullptr;
};

class RecordEncoder {
 public:
  RecordEncoder(RawFile& file, const CuptiLibrary& cupti) : file_(file), cupti_(cupti) {}

  void set_driver(const DriverFunctions& driver) { driver_ = driver; }

  /// Calls of other functions are passed over: an old CUPTI records those of all.
  void keep_driver_call(std::uint32_t call) { keep(0, call); }
  void keep_runtime_call(std::uint32_t call) { keep(1, call); }

  /// Of one buffer. What cannot be read is counted in the file's header.
  void encode(std::uint8_t* buffer, std::size_t valid_bytes);

  void range(std::int64_t begin_ns,
             std::int64_t end_ns,
             std::uint32_t thread,
             const char* name,
             std::size_t length);

 private:
  // Those of CUDA 13.0 end at 807.
  static constexpr std::size_t kMostCalls = 1024;
  using Calls = std::bitset<kMostCalls>;

  struct Place {
    std::uint32_t device, context, stream;
    bool operator==(const Place&) const = default;
  };
  struct Kernel {
    std::uint32_t name;
    std::array<std::int32_t, 6> extents;
    bool operator==(const Kernel&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Place& place) const;
    std::size_t operator()(const Kernel& kernel) const;
  };

  void keep(std::size_t domain, std::uint32_t call) {
    if (call < kMostCalls) kept_calls_[domain].set(call);
  }
  void call(const cupti::abi::ApiActivity& api, bool runtime);
  void kernel(const cupti::abi::KernelActivity& kernel);
  void transfer(const cupti::abi::TransferActivity& activity, RawTag tag);
  void overhead(const cupti::abi::Activity* record);
  void memory(const cupti::abi::MemoryActivity& memory);
  void times(std::uint64_t start, std::uint64_t end, std::uint32_t correlation);

  std::uint32_t thread_index(std::uint32_t id);
  std::uint32_t place_index(const Place& place);
  std::uint32_t kernel_index(const cupti::abi::KernelActivity& kernel);
  std::uint32_t name_index(const char* name, std::size_t length);
  void describe_gpu(std::uint32_t number);

  RawFile& file_;
  const CuptiLibrary& cupti_;
  DriverFunctions driver_;
  std::array<Calls, 2> kept_calls_;
  std::unordered_map<std::uint32_t, std::uint32_t> threads_;
  std::unordered_map<Place, std::uint32_t, Hash> places_;
  std::unordered_map<Kernel, std::uint32_t, Hash> kernels_;
  std::unordered_map<std::string, std::uint32_t> names_;
  std::bitset<1024> gpus_;
  // The last of each, since most records repeat it.
  std::uint32_t last_thread_ = 0, last_thread_index_ = ~0u;
  Place last_place_{};
  std::uint32_t last_place_index_ = ~0u;
  std::string last_name_;
  std::uint32_t last_name_index_ = ~0u;
  Kernel last_kernel_{};
  std::uint32_t last_kernel_index_ = ~0u;
};

}  // namespace launchgap::injected
