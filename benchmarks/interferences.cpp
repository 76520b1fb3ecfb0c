#include "benchmarks/interferences.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/launching.h"
#include "benchmarks/long_kernel.h"
#include "benchmarks/products.h"
#include "benchmarks/repeater.h"
#include "benchmarks/team.h"
#include "harness/core/errors.h"
#include "harness/measure/cpu_counters.h"
#include "harness/measure/device_work.h"
#include "harness/measure/neighbour.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

constexpr std::size_t kCopyBytes = 4 << 20, kAllocationBytes = 4 << 20;

// CPUs

/// A CPU that neither launches nor works for the device, and shares no core with the one that
/// launches.
int cpu_elsewhere(const Device& device, std::string_view what) {
  const bool stream_takes_cpu = backend_of(device.facts()).stream_takes_cpu;
  need_cpus(device, stream_takes_cpu ? 3 : 2, what);
  CpuList others = cpus_for_others(device, allowed_cpus());
  // The first queue of such a device has the last CPU.
  if (stream_takes_cpu) std::erase(others, device.cpus().back());
  if (others.empty()) throw Unsupported("{} need a CPU that nothing else uses", what);
  return others.front();
}

/// The other hardware thread of the core that launches.
int sibling_cpu(const Device& device) {
  const int own = allowed_cpus().front();
  const CpuList threads = threads_of_core(SystemFiles(), own);
  if (threads.empty()) throw Unsupported("the system does not tell which CPUs share a core");
  for (const int cpu : threads) {
    if (cpu == own) continue;
    if (std::ranges::binary_search(device.cpus(), cpu)) return cpu;
    throw Unsupported("CPU {} shares the core that launches, and this process may not use it", cpu);
  }
  throw Unsupported("the core that launches has no second hardware thread");
}

// Beside launches

class Beside : public Interference {
 public:
  Beside(Device& device, int cpu, std::function<std::function<void()>()> make)
      : repeater_(device, cpu, std::move(make)) {}
  void begin() override { repeater_.begin(); }
  void end() override { repeater_.end(); }

 private:
  Repeater repeater_;
};

std::unique_ptr<Interference> allocations(const CaseContext& context, Stream&) {
  Device& device = context.device;
  return std::make_unique<Beside>(
      device, cpu_elsewhere(device, "a thread that allocates and those that launch"), [&device] {
        return [&device] { (void)device.allocate(kAllocationBytes); };
      });
}

/// Copies to the device on a stream of their own.
class Copies : public Interference {
 public:
  Copies(Device& device, bool pinned) : device_(device), pageable_(kCopyBytes, char{7}) {
    const int cpu = cpu_elsewhere(device, "a thread that copies and those that launch");
    to_ = device.allocate(kCopyBytes);
    stream_ = device.create_stream();
    const void* from = pageable_.data();
    if (pinned) {
      pinned_ = device.allocate_shared(kCopyBytes);
      std::ranges::copy(pageable_, static_cast<char*>(pinned_->address()));
      from = pinned_->address();
    }
    stream_->fill_bytes(to_->address(), 1, kCopyBytes);
    stream_->wait();
    repeater_ = std::make_unique<Repeater>(device, cpu, [this, from] {
      return [this, from] {
        stream_->copy(to_->address(), from, kCopyBytes, CopyDirection::host_to_device);
        stream_->wait();
        copied_ = true;
      };
    });
  }
  void begin() override { repeater_->begin(); }
  void end() override { repeater_->end(); }
  void verify() override {
    if (copied_) expect_bytes(device_, *to_, 7);
  }

 private:
  Device& device_;
  std::vector<char> pageable_;
  std::unique_ptr<Buffer> pinned_, to_;
  std::unique_ptr<Stream> stream_;
  std::atomic<bool> copied_{false};
  std::unique_ptr<Repeater> repeater_;
};

std::unique_ptr<Interference> pageable_copies(const CaseContext& context, Stream&) {
  return std::make_unique<Copies>(context.device, false);
}
std::unique_ptr<Interference> pinned_copies(const CaseContext& context, Stream&) {
  return std::make_unique<Copies>(context.device, true);
}

/// One is always running, on a stream of its own.
class LongKernels : public Interference {
 public:
  explicit LongKernels(Device& device) : kernel_(device) {
    if (backend_of(device.facts()).stream_takes_cpu)
      need_cpus(device, 3, "a thread that launches and two queues");
    kernel_.launch_on(kernel_.stream());  // loads what is to be loaded
    kernel_.stream().wait();
  }
  void begin() override { launch(); }
  void before_launch() override {
    constexpr std::int64_t kRenewAfter = kLongKernelNs / 2;
    if (now_ns() - launched_ns_ > kRenewAfter) launch();
  }
  void end() override { kernel_.stream().wait(); }
  void verify() override { kernel_.verify(); }

 private:
  void launch() {
    kernel_.launch_on(kernel_.stream());
    launched_ns_ = now_ns();
  }
  LongKernel kernel_;
  std::int64_t launched_ns_ = 0;
};

std::unique_ptr<Interference> long_kernels(const CaseContext& context, Stream&) {
  return std::make_unique<LongKernels>(context.device);
}

/// A thread that computes, and calls nothing of the device.
std::unique_ptr<Interference> load_on(Device& device, int cpu) {
  return std::make_unique<Beside>(device, cpu, [] {
    return [] {
      constexpr std::int64_t kNs = 50'000;
      const std::int64_t until = now_ns() + kNs;
      while (now_ns() < until) {
      }
    };
  });
}
std::unique_ptr<Interference> load_here(const CaseContext& context, Stream&) {
  return load_on(context.device, allowed_cpus().front());
}
std::unique_ptr<Interference> load_sibling(const CaseContext& context, Stream&) {
  return load_on(context.device, sibling_cpu(context.device));
}
std::unique_ptr<Interference> load_elsewhere(const CaseContext& context, Stream&) {
  return load_on(context.device,
                 cpu_elsewhere(context.device, "a thread that computes and those that launch"));
}

// A second process

/// Whether processes of this user go to the GPU through MPS: its control daemon has made its pipe.
bool mps_runs() {
  const char* const folder = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  std::error_code ignored;
  return std::filesystem::exists(
      std::filesystem::path(folder && *folder ? folder : "/tmp/nvidia-mps") / "control", ignored);
}

class SecondProcess : public Interference {
 public:
  explicit SecondProcess(Device& device)
      : neighbour_(device.facts(), cpu_elsewhere(device, "two processes that launch")) {}
  void begin() override { neighbour_.work(); }
  void end() override { neighbour_.rest(); }
  int processes() const override { return 1; }

 private:
  Neighbour neighbour_;
};

std::unique_ptr<Interference> second_process(const CaseContext& context, Stream&) {
  need(context.device.facts(), Capability::share_with_processes);
  if (mps_runs()) {
    throw Unsupported(
        "MPS runs, so no two processes take turns on the GPU: stop it by `echo quit | "
        "nvidia-cuda-mps-control` to measure that");
  }
  return std::make_unique<SecondProcess>(context.device);
}
std::unique_ptr<Interference> second_process_mps(const CaseContext& context, Stream&) {
  need(context.device.facts(), Capability::share_with_processes);
  if (!mps_runs())
    throw Unsupported("MPS does not run: start it by `nvidia-cuda-mps-control -d` to measure that");
  return std::make_unique<SecondProcess>(context.device);
}

// Between launches

class Between : public Interference {
 public:
  explicit Between(std::function<void()> work) : work_(std::move(work)) {}
  void before_launch() override { work_(); }

 private:
  std::function<void()> work_;
};

/// Of a library, into the stream that is launched into, and waited for.
std::unique_ptr<Interference> library_work(std::unique_ptr<Operation> made, Stream& stream) {
  return std::make_unique<Between>([work = std::shared_ptr(std::move(made)), &stream] {
    work->enqueue_next();
    stream.wait();
  });
}
std::unique_ptr<Interference> products(const CaseContext& context, Stream& stream) {
  return library_work(small_product(context, stream), stream);
}
std::unique_ptr<Interference> convolutions(const CaseContext& context, Stream& stream) {
  return library_work(small_convolution(context, stream), stream);
}

std::unique_ptr<Interference> default_stream(const CaseContext& context, Stream&) {
  const std::shared_ptr<Stream> stream = context.device.default_stream();
  const std::shared_ptr<Kernel> kernel = context.device.load(kernels::null_kernel);
  return std::make_unique<Between>([=] { stream->launch(*kernel, {1, 1}, nullptr); });
}

/// Each is loaded anew, and its first launch waited for.
std::unique_ptr<Interference> first_uses(const CaseContext& context, Stream& stream) {
  need(context.device.facts(), Capability::load_code);
  return std::make_unique<Between>([&device = context.device, &stream] {
    const std::unique_ptr<Kernel> kernel = device.load(kernels::null_kernel);
    stream.launch(*kernel, {1, 1}, nullptr);
    stream.wait();
  });
}

std::unique_ptr<Interference> events(const CaseContext& context, Stream&) {
  return std::make_unique<Between>([&device = context.device] { (void)device.create_event(); });
}
std::unique_ptr<Interference> streams(const CaseContext& context, Stream&) {
  Device& device = context.device;
  if (backend_of(device.facts()).stream_takes_cpu)
    need_cpus(device, 3, "a thread that launches and two queues");
  return std::make_unique<Between>([&device] { (void)device.create_stream(); });
}

/// The thread moves to another CPU before each launch, and back in the end.
class Migrations : public Interference {
 public:
  explicit Migrations(const Device& device)
      : own_(allowed_cpus()),
        cpus_{own_.front(), cpu_elsewhere(device, "the CPUs between which a thread moves")} {}
  ~Migrations() override { bind_thread(own_); }
  void before_launch() override {
    if (!bind_thread({cpus_[++moves_ % 2]}))
      throw Error("the system moves no thread to another CPU");
  }
  void end() override { bind_thread(own_); }

 private:
  CpuList own_;
  int cpus_[2];
  std::size_t moves_ = 0;
};
std::unique_ptr<Interference> migrations(const CaseContext& context, Stream&) {
  return std::make_unique<Migrations>(context.device);
}

std::unique_ptr<Interference> sleeps(const CaseContext&, Stream&) {
  return std::make_unique<Between>(
      [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
}

constexpr InterferenceKind kKinds[] = {
    {.name = "allocation",
     .meaning = "another thread allocates and frees 4 MiB",
     .in_words = "while another thread allocates",
     .make = allocations},
    {.name = "pageable_copy",
     .meaning = "another thread copies 4 MiB of pageable memory to the device, on another stream",
     .in_words = "while another thread copies pageable memory",
     .make = pageable_copies,
     .seconds = 0.02},
    {.name = "pinned_copy",
     .meaning = "the same of pinned memory",
     .in_words = "while another thread copies pinned memory",
     .make = pinned_copies},
    {.name = "long_kernel",
     .meaning = "a kernel of 20 ms runs on another stream",
     .in_words = "while a long kernel runs on another stream",
     .make = long_kernels,
     .seconds = 0.04},
    {.name = "load_here",
     .meaning = "another thread computes on the CPU that launches",
     .in_words = "while another thread computes on the same CPU",
     .make = load_here,
     .launches = 2000,
     .seconds = 0.1},
    {.name = "load_sibling",
     .meaning = "on the other hardware thread of that core",
     .in_words = "while another thread computes on the same core",
     .make = load_sibling},
    {.name = "load_elsewhere",
     .meaning = "on another core",
     .in_words = "while another thread computes on another core",
     .make = load_elsewhere},
    {.name = "process",
     .meaning = "another process launches kernels of 10 us on the same GPU, without MPS",
     .in_words = "while another process uses the GPU",
     .make = second_process,
     .seconds = 0.2,
     .quick = false},
    {.name = "process_mps",
     .meaning = "the same through MPS",
     .in_words = "while another process uses the GPU through MPS",
     .make = second_process_mps,
     .seconds = 0.2,
     .quick = false},
    {.name = "product",
     .meaning = "between two launches a small product of the device's library, in the same stream",
     .in_words = "after a product of the library",
     .make = products,
     .between = true},
    {.name = "convolution",
     .meaning = "likewise a small convolution",
     .in_words = "after a convolution of the library",
     .make = convolutions,
     .launches = 120,
     .seconds = 0.02,
     .quick = false,
     .between = true},
    {.name = "default_stream",
     .meaning = "between two launches one into the legacy default stream",
     .in_words = "behind a launch into the legacy default stream",
     .make = default_stream,
     .needs_default_stream = true,
     .between = true},
    {.name = "first_use",
     .meaning = "between two launches another kernel is loaded and used for the first time",
     .in_words = "after the first use of another kernel",
     .make = first_uses,
     .launches = 60,
     .seconds = 0.1,
     .between = true},
    {.name = "event",
     .meaning = "between two launches an event is made and destroyed",
     .in_words = "after an event was made",
     .make = events,
     .between = true},
    {.name = "stream",
     .meaning = "likewise a stream",
     .in_words = "after a stream was made",
     .make = streams,
     .launches = 60,
     .seconds = 0.02,
     .between = true},
    {.name = "migration",
     .meaning = "the thread moves to another CPU before each launch",
     .in_words = "after the thread moved to another CPU",
     .make = migrations,
     .between = true},
    {.name = "sleep",
     .meaning = "the thread sleeps for 2 ms before each launch",
     .in_words = "after the thread slept",
     .make = sleeps,
     .launches = 40,
     .seconds = 0.09,
     .between = true},
};

}  // namespace

std::span<const InterferenceKind> interference_kinds() {
  return kKinds;
}

const InterferenceKind& interference_named(std::string_view name) {
  const auto* const found = std::ranges::find(kKinds, name, &InterferenceKind::name);
  if (found == std::end(kKinds)) throw Error("there is no interference '{}'", name);
  return *found;
}

}  // namespace launchgap
