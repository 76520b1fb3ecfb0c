// A device as benchmarks see it: a GPU or the host CPU, with queues of work (streams), memory,
// events and the operations that libraries provide on it. A benchmark is one source for all kinds
// of device; what only some have is asked for and may be refused.
//
// Errors: every call may throw LibraryError, and Unsupported where the device cannot do what is
// asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/cpus.h"
#include "harness/core/errors.h"
#include "harness/device/facts.h"
#include "kernels/kernel.h"

namespace launchgap {

using kernels::KernelDescription;
using kernels::LaunchShape;

// Each has a header for those that use it.
class Allocator;
class Convolution;
class Matmul;
class VirtualMemory;
struct ConvolutionShape;
struct MatmulShape;
enum class AllocatorKind;

/// A block of the device's memory, released with the object. `address` may be used on the host only
/// where the device is the host.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual void* address() const = 0;
  virtual std::size_t bytes() const = 0;
};

/// A kernel made ready on the device, with all loading and compiling done.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual std::string form() const = 0;         // "native", "portable" or "host"
  virtual bool compiled_by_driver() const = 0;  // from PTX, when the kernel was loaded
};

/// A point in a stream, with the time at which the device reached it.
class Event {
 public:
  virtual ~Event() = default;
  /// Returns when the point that was recorded last is reached.
  virtual void wait() = 0;
};

/// An event that is only waited for need not keep the time.
enum class EventUse { timing, order };

/// How a stream differs from the usual one, which runs beside all others and has no priority.
struct StreamOptions {
  bool ordered_with_default = false;  // its work and the default stream's wait for each other
  std::optional<int> priority;        // within Device::stream_priorities()
};

/// From which memory a copy takes and into which it goes. On the host device all memory is one.
enum class CopyDirection { device_to_device, host_to_device, device_to_host };

/// A queue of work that the device does in order.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Enqueues a kernel; `arguments[i]` points to the value of its parameter i and is read before
  /// this returns.
  virtual void launch(const Kernel& kernel, LaunchShape shape, void** arguments) = 0;
  /// The same; all blocks are on the device at once, so they may wait for each other.
  virtual void launch_cooperative(const Kernel& kernel, LaunchShape shape, void** arguments) = 0;
  /// The same; the kernel may begin before the one ahead of it has ended, as far as that one lets
  /// it (programmatic dependent launch).
  virtual void launch_dependent(const Kernel& kernel, LaunchShape shape, void** arguments) = 0;
  /// Returns when all work enqueued so far is done.
  virtual void wait() = 0;
  virtual void record(Event& event) = 0;
  /// What is enqueued from now on waits for the event, which another stream may have recorded.
  virtual void wait_for(Event& event) = 0;
  virtual void fill_bytes(void* address, unsigned char value, std::size_t bytes) = 0;
  /// Copies; the two must not overlap, and the host leaves its part alone until the copy is done.
  /// Host memory may be pinned (Device::allocate_shared) or pageable. A call with pageable memory
  /// may wait for all work ahead of it in the stream, and return only when the copy is done, since
  /// a GPU's driver takes it through pinned memory of its own: it must not stand behind a gate.
  virtual void copy(void* to, const void* from, std::size_t bytes, CopyDirection direction) = 0;
};

/// What opening the device took in this process.
struct Opening {
  std::optional<double> initialise_ns;  // loading the driver and starting it
  std::optional<double> context_ns;     // making this process's context on the device
};

// --- Graphs: work that is recorded once and launched as a whole ---

/// Kernels and their order, recorded to be launched together, as often as wanted.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual std::size_t nodes() const = 0;
};

/// A graph made ready to run.
class ExecutableGraph {
 public:
  virtual ~ExecutableGraph() = default;
  /// Brings onto the device what the first launch would otherwise bring.
  virtual void upload(Stream& stream) = 0;
  virtual void launch(Stream& stream) = 0;
  /// Takes over the parameters of a graph of the same shape.
  virtual void update(const Graph& graph) = 0;
};

// --- Launches through another library than the driver's own API ---

/// Another library's ways to launch a kernel that does nothing, as <<<1, 1>>>.
class NullLauncher {
 public:
  virtual ~NullLauncher() = default;
  virtual void launch(Stream& stream) = 0;
  /// Launches a kernel that adds one to an unsigned on the device, in the same way.
  virtual void count(Stream& stream, void* counter) = 0;
  virtual std::string method() const = 0;
};
enum class RuntimeApi { launch_ex, chevron };  // cudaLaunchKernelExC, <<<>>>

// --- The device ---

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceFacts& facts() const = 0;
  virtual std::vector<LoadedLibrary> libraries() const = 0;
  virtual Opening opening() const { return {}; }
  /// Which CPUs this process may use, whatever the launching thread was bound to since.
  const CpuList& cpus() const { return cpus_; }
  /// Whether a kernel may wait for the host. Not where a launch may return only when its kernel has
  /// ended, as under some tools: the host would never come to what the kernel waits for.
  bool kernels_may_wait() const { return kernels_may_wait_; }
  void forbid_waiting_kernels() { kernels_may_wait_ = false; }
  /// Before a thread other than the one that opened the device calls it.
  virtual void use_on_this_thread() {}

  virtual std::unique_ptr<Stream> create_stream(const StreamOptions& options) = 0;
  std::unique_ptr<Stream> create_stream() { return create_stream(StreamOptions()); }
  /// The one stream that every device has, with which `ordered_with_default` streams take turns.
  virtual std::unique_ptr<Stream> default_stream() = 0;
  struct Priorities {
    int lowest, highest;
  };
  virtual Priorities stream_priorities() = 0;
  virtual std::unique_ptr<Event> create_event(EventUse use) = 0;
  std::unique_ptr<Event> create_event() { return create_event(EventUse::timing); }
  /// Nanoseconds from `begin` to `end`, both reached.
  virtual double elapsed_ns(const Event& begin, const Event& end) = 0;

  virtual std::unique_ptr<Kernel> load(const KernelDescription& kernel) = 0;
  /// How many blocks of so many threads the whole device runs at once.
  virtual int resident_blocks(const Kernel& kernel, int threads) = 0;

  /// Records what `work` launches on `stream`, and on streams that it makes wait for that one,
  /// instead of running it.
  virtual std::unique_ptr<Graph> capture(Stream& stream, const std::function<void()>& work) = 0;
  virtual std::unique_ptr<ExecutableGraph> instantiate(const Graph& graph) = 0;
  virtual std::unique_ptr<NullLauncher> runtime_launcher(RuntimeApi api) = 0;

  /// A matrix in the device's memory, as kernels take it of which memory hardware brings boxes
  /// (TMA): the bytes of the parameter.
  struct MatrixMap {
    alignas(128) std::uint64_t opaque[16] = {};
  };
  /// Of bfloat16, rows without gaps; boxes have so many rows of 64 elements, with the 128-byte
  /// swizzle. Throws Unsupported where the device or its driver has no such maps.
  virtual MatrixMap map_matrix(const Buffer& /*matrix*/,
                               int /*rows*/,
                               int /*columns*/,
                               int /*box_rows*/) {
    throw Unsupported("devices of this kind bring no boxes of a matrix");
  }

  virtual std::unique_ptr<Buffer> allocate(std::size_t bytes) = 0;
  /// Host memory that kernels can read and write while the host does. It is pinned: a GPU copies
  /// from and to it without help of the host.
  virtual std::unique_ptr<Buffer> allocate_shared(std::size_t bytes) = 0;
  /// The address by which kernels reach a shared buffer; `address()` is the host's.
  virtual void* device_address(const Buffer& shared) = 0;
  /// Copies `bytes` from `offset` on to the host. The caller has waited for the work that wrote
  /// them.
  virtual void read(const Buffer& from, std::size_t offset, void* to, std::size_t bytes) = 0;
  virtual std::uint64_t free_memory_bytes() = 0;
  /// Waits for all work; throws what went wrong with any of it.
  virtual void check() = 0;

  /// By this library, one of Backend::matmul_libraries; empty: the one that the device's users take
  /// for the type.
  virtual std::unique_ptr<Matmul> matmul(Stream& stream,
                                         const MatmulShape& shape,
                                         std::string_view library = {}) = 0;
  /// By this interface, one of Backend::convolution_interfaces; empty: the first of them.
  virtual std::unique_ptr<Convolution> convolution(Stream& stream,
                                                   const ConvolutionShape& shape,
                                                   std::string_view interface = {}) = 0;
  virtual std::unique_ptr<Allocator> allocator(Stream& stream, AllocatorKind kind) = 0;
  virtual std::unique_ptr<VirtualMemory> virtual_memory() = 0;

 private:
  CpuList cpus_ = allowed_cpus();
  bool kernels_may_wait_ = true;
};

}  // namespace launchgap
