// What a launch does to memory, and the internal interface through which the fake cuBLAS and cuDNN
// put their work on the fake driver's streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/device/cuda/abi/driver.h"
#include "tests/fake_cuda/listener.h"
#include "tests/fake_cuda/node.h"

namespace launchgap::fake {

namespace abi = launchgap::cuda::abi;

/// Bytes of memory.
struct Range {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;

  std::uintptr_t end() const { return begin + bytes; }
  bool overlaps(const Range& other) const { return begin < other.end() && other.begin < end(); }
  bool contains(const Range& other) const { return begin <= other.begin && other.end() <= end(); }
};

inline Range range_of(const void* pointer, std::size_t bytes) {
  return {reinterpret_cast<std::uintptr_t>(pointer), bytes};
}

/// The parts of a signature, in a row.
std::string signature_of(const auto&... parts) {
  std::ostringstream text;
  ((text << std::hexfloat << parts << ' '), ...);
  return text.str();
}

/// The effect of one launch.
struct Operation {
  std::vector<Range> reads;
  std::vector<Range> writes;  // of a repeatable operation: none or one
  bool dense = true;          // every byte of `writes` is written
  bool unknown = false;       // reads and writes are not known
  /// The result depends on nothing but `reads` and what the signature says, so it may be computed
  /// later, in parts, or not again. Empty: the operation is executed in its place.
  std::string signature;
  /// Computes at least the bytes [begin, end) of the write; of an operation without a signature,
  /// everything.
  std::function<void(std::size_t begin, std::size_t end)> compute;

  bool has_effect() const { return unknown || !reads.empty() || !writes.empty(); }
};

/// As an algorithm that computes one element wrongly: one byte of the first element of what it
/// writes.
inline void spoil_first_element(Operation& operation) {
  const Range result = operation.writes.front();
  operation.signature += " wrong";
  operation.compute = [=, compute = std::move(operation.compute)](std::size_t begin,
                                                                  std::size_t end) {
    compute(begin, end);
    if (begin == 0) *reinterpret_cast<unsigned char*>(result.begin) ^= 0xC0;
  };
}

/// One of the kernels of a library's call.
struct LibraryKernel {
  KernelShape shape;
  double share = 1;  // of the time that all of them take
};

struct Attendance;

/// Who calls the driver: cuBLAS or cuDNN, or the runtime for a program.
enum class LibraryCaller { library, chevron, launch_ex };

/// The fake driver, as its neighbours see it.
class Driver {
 public:
  virtual ~Driver() = default;

  /// Null when the description is unusable.
  virtual const Node* node() = 0;

  /// kSuccess with the device of the thread's current context; otherwise what the driver would
  /// answer.
  virtual abi::Result current_device(const DeviceDescription** device) = 0;

  /// Counts a call against the faults: hangs, aborts, or returns the code that the call must return
  /// (0: none).
  virtual int enter(Library library, const char* call) = 0;

  /// The time that a process's first handle of a library takes.
  virtual void load_library(Library library) = 0;

  /// By how much the device is slower than described right now.
  virtual double pace(const std::string& uuid) = 0;

  /// Enqueues work that takes `work_ns` beside the device's launch and kernel times, as kernels of
  /// which the last one has the effect; returns when a launch that began at `begin_ns`
  /// (CLOCK_MONOTONIC) would.
  virtual abi::Result launch(LibraryCaller caller,
                             abi::Stream stream,
                             double begin_ns,
                             const std::vector<LibraryKernel>& kernels,
                             double work_ns,
                             Operation operation) = 0;

  /// The same for a kernel that waits for those of other devices, on the current one, and lasts
  /// what the node says once all have begun. What its `give` reads is `operation.reads`.
  virtual abi::Result meet(Attendance attendance,
                           abi::Stream stream,
                           double begin_ns,
                           const KernelShape& shape,
                           Operation operation) = 0;

  /// Makes a device's context the thread's, where it has one, or none (below 0); returns which was.
  virtual int set_device(int ordinal) = 0;

  /// From now on `listener` hears every call; null: nobody does. It must live on: calls that have
  /// begun still tell it of their end.
  virtual void listen(Listener* listener) = 0;

  /// Returns when the device of the thread's current context has done all of its work.
  virtual abi::Result wait() = 0;

  /// Runs what is due on every device.
  virtual void look() = 0;
};

inline constexpr auto kDriverSymbol = "launchgap_fake_driver";
using DriverFunction = Driver*();

/// The driver of this process; null when there is none.
Driver* find_driver();

/// The same, without loading one.
Driver* loaded_driver();

/// The device of the thread's current context; null where there is none that can be used.
inline const DeviceDescription* current_device() {
  const DeviceDescription* device = nullptr;
  return find_driver()->current_device(&device) == abi::kSuccess ? device : nullptr;
}

/// What the fake libraries' handles and descriptors are.
template <class T, class Opaque>
T* as(Opaque* handle) {
  return reinterpret_cast<T*>(handle);
}

/// What a table of pairs has for a key, if it has it.
template <class Key, class Value, std::size_t count>
std::optional<Value> found_in(const std::pair<Key, Value> (&table)[count], int key) {
  for (const auto& [known, value] : table) {
    if (known == key) return value;
  }
  return std::nullopt;
}

/// Puts what a call asks for where it says; `if_null` where that is nowhere, else 0.
template <class To, class Value>
int put(To* to, const Value& value, int if_null) {
  if (to == nullptr) return if_null;
  *to = static_cast<To>(value);
  return 0;
}

/// Whether an environment variable is set to this.
inline bool environment_is(const char* name, std::string_view value) {
  const char* const text = std::getenv(name);
  return text != nullptr && text == value;
}

/// What LAUNCHGAP_FAKE_SEED says, if it says anything.
inline std::optional<std::uint64_t> wanted_seed() {
  const char* const text = std::getenv("LAUNCHGAP_FAKE_SEED");
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

/// CLOCK_MONOTONIC in ns: a double holds 104 days of it exactly.
double now_ns();

}  // namespace launchgap::fake

#define EXPORT extern "C" __attribute__((visibility("default")))

/// Of a list of functions (harness/device/cuda/abi): a definition with another signature than the
/// harness calls does not compile.
#define LAUNCHGAP_SAME_SIGNATURE(name, required, ...) \
  static_assert(std::is_same_v<decltype(fake::name), __VA_ARGS__>, #name);
