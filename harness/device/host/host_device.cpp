#include "harness/device/host/host_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/cpus.h"
#include "harness/core/errors.h"
#include "harness/core/plan.h"
#include "harness/device/allocator.h"
#include "harness/device/code_levels.h"
#include "harness/device/convolution.h"
#include "harness/device/device.h"
#include "harness/device/host/libraries.h"
#include "harness/device/host/queue.h"
#include "harness/device/host/recorder.h"
#include "harness/device/matmul.h"

namespace launchgap::host {
namespace {

std::vector<LoadedLibrary>& loaded() {
  static std::vector<LoadedLibrary> libraries;
  return libraries;
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

/// For whoever does not ask first.
[[noreturn]] void cannot(Capability what) {
  throw Unsupported(std::string(backend().why_not[static_cast<std::size_t>(what)]));
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

/// What the control group (version 2) and those above it leave; everything where there is no limit.
std::uint64_t control_group_memory_left() {
  std::uint64_t left = ~std::uint64_t{0};
  std::string group = first_line("/proc/self/cgroup");
  if (!group.starts_with("0::/")) return left;
  for (group.erase(0, 3); !group.empty(); group.erase(group.rfind('/'))) {
    const std::string folder = "/sys/fs/cgroup" + group;
    const std::string limit = first_line((folder + "/memory.max").c_str());
    const std::string used = first_line((folder + "/memory.current").c_str());
    if (limit.empty() || limit == "max" || used.empty()) continue;
    const std::uint64_t most = std::strtoull(limit.c_str(), nullptr, 10),
                        now = std::strtoull(used.c_str(), nullptr, 10);
    left = std::min(left, most > now ? most - now : 0);
  }
  return left;
}

std::optional<int> max_clock_mhz() {
  const std::string khz = first_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  return khz.empty() ? std::nullopt : std::optional(std::atoi(khz.c_str()) / 1000);
}

std::optional<std::uint64_t> positive(long value) {
  return value > 0 ? std::optional<std::uint64_t>(value) : std::nullopt;
}

DeviceFacts probe() {
  DeviceFacts facts;
  facts.backend = backend().name;
  // The machine's id must not leave the machine (machine-id(5)), so it goes through a one-way mix
  // first.
  facts.uuid = fmt::format("host-{:016x}",
                           derive_seed(0, first_line("/etc/machine-id") + "/" + host_name()));
  facts.name = cpu_model();
  facts.multiprocessors = static_cast<int>(allowed_cpus().size());
  facts.memory_bytes = positive(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
  facts.last_level_cache_bytes = last_level_cache_bytes();
  facts.clock_mhz = max_clock_mhz();
  return facts;
}

class HostBuffer : public Buffer {
 public:
  explicit HostBuffer(std::size_t bytes) : bytes_(bytes) {
    constexpr std::size_t kAlignment = 4096;
    address_ = std::aligned_alloc(
        kAlignment, (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment);
    if (!address_)
      throw LibraryError("host", "aligned_alloc", ENOMEM, fmt::format("{} bytes", bytes), false);
  }
  ~HostBuffer() override { std::free(address_); }
  void* address() const override { return address_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  void* address_;
  std::size_t bytes_;
};

class HostKernel : public Kernel {
 public:
  explicit HostKernel(const KernelDescription& description) : description(description) {}
  std::string form() const override { return "host"; }
  bool compiled_by_driver() const override { return false; }
  const KernelDescription& description;
};

class HostEvent : public Event {
 public:
  void wait() override {
    if (queue) queue->wait();
  }
  std::int64_t reached_ns = 0;
  Queue* queue = nullptr;  // where it was recorded
};

class HostStream : public Stream {
 public:
  HostStream(int cpu, bool shares_cpu, std::size_t& streams)
      : queue({cpu}, shares_cpu), streams_(++streams) {}
  ~HostStream() override { --streams_; }
  void launch(const Kernel& kernel, LaunchShape shape, void** arguments) override {
    queue.launch(static_cast<const HostKernel&>(kernel).description, shape, arguments);
  }
  void launch_cooperative(const Kernel&, LaunchShape, void**) override {
    cannot(Capability::launch_cooperatively);
  }
  void launch_dependent(const Kernel&, LaunchShape, void**) override {
    cannot(Capability::launch_dependently);
  }
  void wait() override { queue.wait(); }
  void wait_for(Event&) override { cannot(Capability::wait_for_streams); }
  void record(Event& event) override {
    auto& own = static_cast<HostEvent&>(event);
    own.queue = &queue;
    queue.run([&own] { own.reached_ns = now_ns(); });
  }
  void fill_bytes(void* address, unsigned char value, std::size_t bytes) override {
    queue.run([=] { std::memset(address, value, bytes); }, "memset");
  }
  void copy(void* to, const void* from, std::size_t bytes, CopyDirection) override {
    queue.run([=] { std::memcpy(to, from, bytes); }, "memcpy");
  }
  Queue queue;

 private:
  std::size_t& streams_;  // of the device
};

/// Another allocator, with its calls written down. Only traced runs have it, so that the plain
/// one times nothing but the calls themselves.
class RecordedAllocator : public Allocator {
 public:
  RecordedAllocator(std::unique_ptr<Allocator> allocator, Recorder& to)
      : allocator_(std::move(allocator)), recorder_(to) {}
  void* allocate(std::size_t bytes) override {
    const std::int64_t begin_ns = now_ns();
    void* const address = allocator_->allocate(bytes);
    recorder_.allocation(activity::Purpose::allocate, begin_ns, now_ns(), address, bytes);
    return address;
  }
  void release(void* address, std::size_t bytes) override {
    const std::int64_t begin_ns = now_ns();
    allocator_->release(address, bytes);
    recorder_.allocation(activity::Purpose::release, begin_ns, now_ns(), address, bytes);
  }
  void touch(void* address, std::size_t bytes) override { allocator_->touch(address, bytes); }
  void trim() override { allocator_->trim(); }
  std::optional<std::uint64_t> reserved_bytes() const override {
    return allocator_->reserved_bytes();
  }
  std::string method() const override { return allocator_->method(); }

 private:
  std::unique_ptr<Allocator> allocator_;
  Recorder& recorder_;
};

class HostDevice : public Device {
 public:
  HostDevice() : facts_(probe()) {
    facts_.details["wait"] =
        shares_cpu(cpu_of_worker(0)) ? "sleep: one CPU" : "spin 50 us, then sleep";
  }

  const DeviceFacts& facts() const override { return facts_; }
  std::vector<LoadedLibrary> libraries() const override { return loaded_libraries(); }

  /// The launching thread has the first CPU and the worker the last, so that they never take turns
  /// on one if there are two; the workers of further queues have those before it.
  std::unique_ptr<Stream> create_stream(const StreamOptions& options) override {
    if (options.priority) cannot(Capability::use_priorities);
    if (options.ordered_with_default) cannot(Capability::use_default_stream);
    const int worker = cpu_of_worker(streams_);
    facts_.details["queue_cpu"] = cpu_list_text({worker});
    return std::make_unique<HostStream>(worker, shares_cpu(worker), streams_);
  }
  std::unique_ptr<Stream> default_stream() override { cannot(Capability::use_default_stream); }
  Priorities stream_priorities() override { cannot(Capability::use_priorities); }
  int resident_blocks(const Kernel&, int) override { cannot(Capability::run_many_blocks); }
  std::unique_ptr<Graph> capture(Stream&, const std::function<void()>&) override {
    cannot(Capability::make_graphs);
  }
  std::unique_ptr<ExecutableGraph> instantiate(const Graph&) override {
    cannot(Capability::make_graphs);
  }
  std::unique_ptr<NullLauncher> runtime_launcher(RuntimeApi) override {
    cannot(Capability::launch_in_several_ways);
  }
  std::unique_ptr<Event> create_event(EventUse) override { return std::make_unique<HostEvent>(); }
  double elapsed_ns(const Event& begin, const Event& end) override {
    return static_cast<double>(static_cast<const HostEvent&>(end).reached_ns -
                               static_cast<const HostEvent&>(begin).reached_ns);
  }
  std::unique_ptr<Kernel> load(const KernelDescription& kernel) override {
    return std::make_unique<HostKernel>(kernel);
  }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override {
    return std::make_unique<HostBuffer>(bytes);
  }
  std::unique_ptr<Buffer> allocate_shared(std::size_t bytes) override { return allocate(bytes); }
  void* device_address(const Buffer& shared) override { return shared.address(); }
  void read(const Buffer& from, std::size_t offset, void* to, std::size_t bytes) override {
    std::memcpy(to, static_cast<const char*>(from.address()) + offset, bytes);
  }
  void check() override {}
  /// What the kernel says can be had without swapping: more than what is unused, since caches can
  /// be dropped.
  std::uint64_t free_memory_bytes() override {
    std::ifstream file("/proc/meminfo");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("MemAvailable:")) {
        return std::min<std::uint64_t>(std::strtoull(line.c_str() + 13, nullptr, 10) * 1024,
                                       control_group_memory_left());
      }
    }
    throw Error("/proc/meminfo does not say how much memory is available");
  }

  std::unique_ptr<Matmul> matmul(Stream& stream,
                                 const MatmulShape& shape,
                                 std::string_view library) override {
    // OpenBLAS has FP32 and FP64 alone.
    const bool single = shape.type.name == "fp32" || shape.type.name == "fp64";
    if (library.empty()) library = single ? "openblas" : "onednn";
    if (library == "openblas") return openblas_matmul(library_queue(stream), shape, threads());
    if (library == "onednn") return onednn_matmul(library_queue(stream), shape, threads());
    throw Unsupported("the host has no library '{}'", library);
  }
  std::unique_ptr<Convolution> convolution(Stream& stream,
                                           const ConvolutionShape& shape,
                                           std::string_view interface) override {
    if (!interface.empty() && interface != "onednn")
      throw Unsupported("the host has no interface '{}' for convolutions", interface);
    return onednn_convolution(library_queue(stream), shape, threads());
  }
  std::unique_ptr<Allocator> allocator(Stream&, AllocatorKind kind) override {
    std::unique_ptr<Allocator> plain = make_allocator(kind, *this);
    if (!recorder) return plain;
    return std::make_unique<RecordedAllocator>(std::move(plain), *recorder);
  }
  std::unique_ptr<VirtualMemory> virtual_memory() override { return make_virtual_memory(); }

 private:
  int threads() const { return static_cast<int>(cpus().size()); }
  int cpu_of_worker(std::size_t stream) const {
    return cpus()[cpus().size() - 1 - stream % cpus().size()];
  }
  bool shares_cpu(int worker) const { return worker == cpus().front(); }

  /// Libraries start their threads from the queue's worker, and threads inherit their parent's
  /// CPUs: a worker bound to one CPU would squeeze all of them onto it.
  Queue& library_queue(Stream& stream) {
    Queue& queue = static_cast<HostStream&>(stream).queue;
    queue.run([cpus = cpus()] { bind_thread(cpus); });
    queue.wait();
    return queue;
  }

  DeviceFacts facts_;
  std::size_t streams_ = 0;  // that there are now
};

}  // namespace

void note_loaded(const LoadedLibrary& library) {
  loaded().push_back(library);
}
std::vector<LoadedLibrary> loaded_libraries() {
  return loaded();
}

const Backend& backend() {
  static const Backend backend = [] {
    Backend host;
    host.name = "host";
    host.is_gpu = false;
    host.processors = "CPUs";
    host.launch_api = "queue";
    host.launcher = "host queue";
    host.runs_alone = true;
    host.stream_takes_cpu = true;
    host.launches_from_first_cpu = true;
    host.recorded_by = RecordedBy::backend;
    host.matmul_types = {"fp64", "fp32", "bf16", "int8"};
    host.matmul_libraries = {"openblas", "onednn"};
    host.convolution_interfaces = {"onednn"};
    host.convolution_types = {"fp32", "bf16"};
    host.expected = {.matmul_flops = 5e10,
                     .convolution_flops = 8e10,
                     .per_processor = true,
                     .allocated_bytes_per_s = 3e9,
                     .start_seconds = 0.15,
                     .launches = 0.4};
    const auto cannot = [&](Capability what, std::string_view why) {
      host.why_not[static_cast<std::size_t>(what)] = why;
    };
    cannot(Capability::launch_in_several_ways,
           "the host's queue has one way to launch, which launch/null measures");
    cannot(Capability::launch_cooperatively,
           "a task on the host's queue has no blocks that could wait for each other");
    cannot(Capability::launch_dependently,
           "tasks on the host's queue run one after the other and never overlap");
    cannot(Capability::pass_any_arguments,
           "a task on the host's queue has at most 64 bytes of arguments");
    cannot(Capability::run_many_blocks, "a task on the host's queue has no blocks");
    cannot(Capability::load_code, "the host's kernels are part of the program");
    cannot(Capability::choose_wait,
           "the host's queue has one way to wait: it spins for 50 µs and then sleeps");
    cannot(Capability::wait_for_streams, "the host's queues do not wait for each other");
    cannot(Capability::share_streams, "a queue of the host takes tasks from one thread only");
    cannot(Capability::use_default_stream, "the host has no default queue");
    cannot(Capability::use_priorities, "the host's queues have no priorities");
    cannot(Capability::make_graphs, "the host's queue has no graphs");
    cannot(Capability::wait_for_all, "each of the host's queues is waited for by itself");
    cannot(Capability::share_with_processes,
           "processes share nothing of the host but its CPUs, which the cases load_* show");
    host.environment = [](std::span<const std::string>) {
      return std::map<std::string, std::string>{{"CUDA_VISIBLE_DEVICES", ""}};
    };
    host.probe = [](const ProbeOptions&) { return std::vector<DeviceFacts>{probe()}; };
    host.open = [](const std::string&, const OpenOptions& options) -> std::unique_ptr<Device> {
      if (!options.code.empty()) choose_code(options.code);
      return std::make_unique<HostDevice>();
    };
    return host;
  }();
  return backend;
}

}  // namespace launchgap::host
