// A device as benchmarks see it: a GPU or the host CPU, with queues of work (streams), memory,
// events and the operations that libraries provide on it. A benchmark is one source for all kinds of
// device; what only some have is asked for and may be refused.
//
// Errors: every call may throw LibraryError, and Unsupported where the device cannot do what is
// asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/cpus.h"
#include "kernels/element.h"
#include "kernels/kernel.h"

namespace launchgap {

using kernels::ElementType;
using kernels::KernelDescription;
using kernels::LaunchShape;

/// What a device is. Absent values are unknown, never zero.
struct DeviceFacts {
  std::string backend;  // "cuda" or "host"
  std::string
      uuid;  // "GPU-…", "MIG-…", or "host-…": identifies the device across reboots and orders
  int index = 0;  // in the driver's order, among devices of this backend
  std::string name;
  std::optional<std::string> compute_capability;  // "9.0"
  std::optional<std::string> pci_bus_id;          // "0000:07:00.0"
  std::optional<std::uint64_t> memory_bytes;
  std::optional<int> multiprocessors;  // SMs, or cores this process may use
  std::optional<int> clock_mhz;        // highest
  std::optional<int> memory_clock_mhz;
  std::optional<int> memory_bus_bits;
  std::optional<std::uint64_t> last_level_cache_bytes;
  std::optional<int> numa_node;
  std::optional<std::string>
      driver_version;  // "13.0", as the driver reports the CUDA version it serves
  std::map<std::string, std::string> details;  // whatever else was found, by name
  bool simulated = false;                      // a fake library of the tests stands below
  bool usable = true;
  std::string reason;  // why not usable
};

/// A library as it was loaded.
struct LoadedLibrary {
  std::string name;     // "cuBLAS"
  std::string soname;   // "libcublas.so.13"
  std::string path;     // where the loader found it
  std::string version;  // what the library says of itself
  bool simulated = false;
};

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

/// A queue of work that the device does in order.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Enqueues a kernel; `arguments[i]` points to the value of its parameter i and is read before
  /// this returns.
  virtual void launch(const Kernel& kernel, LaunchShape shape, void** arguments) = 0;
  /// The same; all blocks are on the device at once, so they may wait for each other.
  virtual void launch_cooperative(const Kernel& kernel, LaunchShape shape, void** arguments);
  /// The same; the kernel may begin before the one ahead of it has ended, as far as that one lets
  /// it (programmatic dependent launch).
  virtual void launch_dependent(const Kernel& kernel, LaunchShape shape, void** arguments);
  /// Returns when all work enqueued so far is done.
  virtual void wait() = 0;
  virtual void record(Event& event) = 0;
  /// What is enqueued from now on waits for the event, which another stream may have recorded.
  virtual void wait_for(Event& event);
  virtual void fill_bytes(void* address, unsigned char value, std::size_t bytes) = 0;
};

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

/// What opening the device took in this process.
struct Opening {
  std::optional<double> initialise_ns;  // loading the driver and starting it
  std::optional<double> context_ns;     // making this process's context on the device
};

/// Settings of a whole process, made before the device is opened.
enum class WaitMode { spin, yield, block };
enum class CodeLoading {
  unchanged,     // as the environment says
  lazy,          // when a kernel is first used
  eager,         // with its module
  jit_uncached,  // compiled by the driver from PTX in this process
  jit_warming,   // the same, and left for later processes in `jit_cache`
  jit_cached     // compiled by an earlier process, which was `jit_warming`
};
struct OpenOptions {
  WaitMode wait = WaitMode::spin;
  CodeLoading loading = CodeLoading::unchanged;
  std::string jit_cache;  // a folder
};

/// C = A B, row-major square matrices of `size` x `size`.
struct MatmulShape {
  int size = 0;
  ElementType type = ElementType::fp32;  // of A, B and C; products are summed in FP32
  bool allow_tf32 = false;               // FP32 inputs may be rounded to TF32 (10 bits of mantissa)

  double operations() const { return 2.0 * size * size * size; }
};

/// A library's matrix product, ready to run.
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual void enqueue(const Buffer& a, const Buffer& b, Buffer& c) = 0;
  virtual std::string method() const = 0;  // library, call and algorithm
};

/// A two-dimensional forward convolution (cross-correlation) without bias: input n x c x h x w,
/// filters k x c x r x s, output n x k x out_h x out_w, all in this order in memory.
struct ConvolutionShape {
  std::string layer;
  int n = 1, c = 1, h = 1, w = 1;
  int k = 1, r = 1, s = 1;
  int stride = 1, pad = 0;
  ElementType type = ElementType::fp32;  // of all three tensors; products are summed in FP32
  bool allow_tf32 = false;               // as for MatmulShape

  int out_h() const { return (h + 2 * pad - r) / stride + 1; }
  int out_w() const { return (w + 2 * pad - s) / stride + 1; }
  std::size_t input_count() const { return std::size_t{1} * n * c * h * w; }
  std::size_t filter_count() const { return std::size_t{1} * k * c * r * s; }
  std::size_t output_count() const { return std::size_t{1} * n * k * out_h() * out_w(); }
  double operations() const { return 2.0 * static_cast<double>(output_count()) * c * r * s; }
};

/// A library's convolution, ready to run on one or several sets of tensors. It may keep them in a
/// layout of its own: `add_tensors` brings them into it and `read_output` back, neither of which is
/// part of `enqueue`.
class Convolution {
 public:
  virtual ~Convolution() = default;
  /// A set of tensors with these inputs, which must live as long; sets are numbered from 0. Waits.
  virtual void add_tensors(const Buffer& input, const Buffer& filter) = 0;
  /// Brings the inputs of a set in again, after they were changed. Waits.
  virtual void update_tensors(std::size_t set) = 0;
  virtual void enqueue(std::size_t set) = 0;
  /// What the last `enqueue` on this set computed, `output_count()` elements in host memory. Waits.
  virtual void read_output(std::size_t set, void* output) = 0;
  virtual std::string method() const = 0;
  /// Whether the algorithm transforms its inputs (Winograd, FFT), so that even integers come out
  /// rounded.
  virtual bool rounds_integers() const = 0;
};

/// Ways to get memory.
enum class AllocatorKind {
  direct,  // one call to the system or driver each: malloc, cuMemAlloc
  mapped,  // pages mapped for each allocation: mmap
  pool,    // from memory kept by the process: std::pmr pool, cuMemAllocAsync
};

/// One way to get memory. `allocate` and `release` are the timed calls and do nothing else.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* address, std::size_t bytes) = 0;
  /// Writes the whole allocation once and waits until that is done.
  virtual void touch(void* address, std::size_t bytes) = 0;
  virtual std::string method() const = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceFacts& facts() const = 0;
  virtual std::vector<LoadedLibrary> libraries() const = 0;
  virtual Opening opening() const { return {}; }
  /// Which CPUs this process may use, whatever the launching thread was bound to since.
  const CpuList& cpus() const { return cpus_; }
  /// Before a thread other than the one that opened the device calls it.
  virtual void use_on_this_thread() {}

  virtual std::unique_ptr<Stream> create_stream() = 0;
  virtual std::unique_ptr<Stream> create_stream(const StreamOptions& options);
  /// The one stream that every device has, with which `ordered_with_default` streams take turns.
  virtual std::unique_ptr<Stream> default_stream();
  struct Priorities {
    int lowest, highest;
  };
  virtual Priorities stream_priorities();
  virtual std::unique_ptr<Event> create_event(EventUse use) = 0;
  std::unique_ptr<Event> create_event() { return create_event(EventUse::timing); }
  /// Nanoseconds from `begin` to `end`, both reached.
  virtual double elapsed_ns(const Event& begin, const Event& end) = 0;

  virtual std::unique_ptr<Kernel> load(const KernelDescription& kernel) = 0;
  /// How many blocks of so many threads the whole device runs at once.
  virtual int resident_blocks(const Kernel& kernel, int threads);

  /// Records what `work` launches on `stream`, and on streams that it makes wait for that one,
  /// instead of running it.
  virtual std::unique_ptr<Graph> capture(Stream& stream, const std::function<void()>& work);
  virtual std::unique_ptr<ExecutableGraph> instantiate(const Graph& graph);
  virtual std::unique_ptr<NullLauncher> runtime_launcher(RuntimeApi api);

  virtual std::unique_ptr<Buffer> allocate(std::size_t bytes) = 0;
  /// Host memory that kernels can read and write while the host does.
  virtual std::unique_ptr<Buffer> allocate_shared(std::size_t bytes) = 0;
  /// The address by which kernels reach a shared buffer; `address()` is the host's.
  virtual void* device_address(const Buffer& shared) = 0;
  /// Copies `bytes` from `offset` on to the host. The caller has waited for the work that wrote
  /// them.
  virtual void read(const Buffer& from, std::size_t offset, void* to, std::size_t bytes) = 0;
  virtual std::uint64_t free_memory_bytes() = 0;
  /// Waits for all work; throws what went wrong with any of it.
  virtual void check() = 0;

  virtual std::unique_ptr<Matmul> matmul(Stream& stream, const MatmulShape& shape) = 0;
  virtual std::unique_ptr<Convolution> convolution(Stream& stream,
                                                   const ConvolutionShape& shape) = 0;
  virtual std::unique_ptr<Allocator> allocator(Stream& stream, AllocatorKind kind) = 0;

 private:
  CpuList cpus_ = allowed_cpus();
};

/// A GPU of which nothing is known but its number.
DeviceFacts unknown_gpu(int index);

/// How devices are looked for by a process that a driver may end.
struct ProbeOptions {
  std::optional<int> index;                     // only this GPU
  std::function<void(int)> found = [](int) {};  // how many GPUs there are
  /// What is asked next, before it is asked: the driver's call.
  std::function<void(const char*)> asking = [](const char*) {};
};

/// Every device that can be seen, without keeping any of them open. A GPU of which the driver says
/// too little is there, not usable, and has the reason. Backends: "host", "cuda".
std::vector<DeviceFacts> probe_devices(const std::string& backend,
                                       const ProbeOptions& options = {});

/// Opens a device for use by this process. Throws Error if there is no such device or it cannot be
/// used.
std::unique_ptr<Device> open_device(const std::string& backend,
                                    const std::string& uuid,
                                    const OpenOptions& options = {});

}  // namespace launchgap
