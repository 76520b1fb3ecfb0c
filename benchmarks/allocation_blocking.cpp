// Whether a call that allocates or gives back waits for what the device does, and what it does to
// launches of another thread.
#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "benchmarks/allocating.h"
#include "benchmarks/launching.h"
#include "benchmarks/long_kernel.h"
#include "benchmarks/team.h"
#include "harness/core/errors.h"
#include "harness/device/allocator.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

constexpr std::size_t kBlockingBytes = std::size_t{4} << 20;
constexpr std::size_t kMappedBytes = std::size_t{20} << 20;
/// The call is made once the kernel surely runs.
constexpr std::int64_t kHeadStartNs = 2'000'000;

void spin_for(std::int64_t ns) {
  const std::int64_t end = now_ns() + ns;
  while (now_ns() < end) {
  }
}

/// The operation of a sample: what must be there before the kernel runs, the timed call, and
/// putting things in order when the kernel has ended.
class TimedOperation {
 public:
  virtual ~TimedOperation() = default;
  virtual void prepare() = 0;
  virtual void call() = 0;
  virtual void put_away() = 0;
  virtual std::string method() const = 0;
};

/// A call of an allocator that was made for it: it holds nothing yet that it could hand out.
class AllocatorCall : public TimedOperation {
 public:
  AllocatorCall(const CaseContext& context, Stream& stream, bool releases, std::string allocator)
      : context_{context.device, context.name, context.seed},
        stream_(stream),
        releases_(releases),
        name_(std::move(allocator)) {
    make();
    method_ = allocator_->method();
    allocator_.reset();
  }
  ~AllocatorCall() override { give_back(); }

  void prepare() override {
    make();
    if (!releases_) return;
    block_ = allocator_->allocate(kBlockingBytes);
    allocator_->touch(block_, kBlockingBytes);
  }
  void call() override {
    if (releases_) {
      allocator_->release(block_, kBlockingBytes);
      block_ = nullptr;
    } else {
      block_ = allocator_->allocate(kBlockingBytes);
    }
  }
  void put_away() override {
    if (block_ && !releases_) allocator_->touch(block_, kBlockingBytes);  // it is memory indeed
    give_back();
  }
  std::string method() const override { return method_; }

 private:
  void make() {
    constexpr std::uint64_t kLimit = std::uint64_t{1} << 30;
    allocator_ = allocation::allocator_named(context_.device, stream_, name_, kLimit);
  }
  void give_back() noexcept {
    try {
      if (block_) allocator_->release(std::exchange(block_, nullptr), kBlockingBytes);
    } catch (const std::exception&) {  // it was told of when it failed first
    }
    allocator_.reset();
  }

  CaseContext context_;
  Stream& stream_;
  bool releases_;
  std::string name_, method_;
  std::unique_ptr<Allocator> allocator_;
  void* block_ = nullptr;
};

class MappingCall : public TimedOperation {
 public:
  MappingCall(Device& device, bool unmaps) : memory_(device.virtual_memory()), unmaps_(unmaps) {
    const std::size_t page = memory_->granularity();
    bytes_ = rounded_up(kMappedBytes, page);
    range_ = memory_->reserve(bytes_);
  }
  ~MappingCall() override {
    try {
      put_away();
      memory_->unreserve(range_, bytes_);
    } catch (const std::exception&) {  // it was told of when it failed first
    }
  }
  void prepare() override {
    if (unmaps_) map();
  }
  void call() override { unmaps_ ? unmap() : map(); }
  void put_away() override {
    if (mapped_) unmap();
  }
  std::string method() const override {
    return fmt::format("{} of {} MiB", unmaps_ ? "unmapping" : "mapping", bytes_ >> 20);
  }

 private:
  void map() {
    memory_->map(range_, bytes_);
    mapped_ = true;
  }
  void unmap() {
    mapped_ = false;
    memory_->unmap(range_, bytes_);
  }

  std::unique_ptr<VirtualMemory> memory_;
  bool unmaps_;
  std::size_t bytes_ = 0;
  void* range_ = nullptr;
  bool mapped_ = false;
};

/// A thread that launches a null kernel every 50 us, on a stream of its own: so few that none waits
/// for room, even if all are queued behind the long kernel. It notes when each call returned.
class SteadyLauncher {
 public:
  SteadyLauncher(Device& device, int cpu) : device_(device), stream_(device.create_stream()) {
    kernel_ = device.load(kernels::null_kernel);
    stream_->launch(*kernel_, {1, 1}, nullptr);
    stream_->wait();
    returned_.reserve(kMost);
    thread_ = std::thread([this, cpu] {
      bind_thread({cpu});
      serve();
    });
    while (!launching_ && !ended_) std::this_thread::yield();
  }
  ~SteadyLauncher() { end(); }
  SteadyLauncher(const SteadyLauncher&) = delete;
  SteadyLauncher& operator=(const SteadyLauncher&) = delete;

  /// Ends the launching; rethrows what went wrong with it.
  void stop() {
    end();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  /// The longest time without a launch, of times that have a part between `from` and `to`. After
  /// stop().
  std::optional<double> longest_gap_during(std::int64_t from, std::int64_t to) const {
    return longest_gap(
        [&](std::int64_t begin, std::int64_t end) { return begin <= to && end >= from; });
  }
  /// The same, of times that lie between `from` and `to`.
  std::optional<double> longest_gap_within(std::int64_t from, std::int64_t to) const {
    return longest_gap(
        [&](std::int64_t begin, std::int64_t end) { return begin >= from && end <= to; });
  }

 private:
  static constexpr std::size_t kMost = 100'000;
  static constexpr std::int64_t kPeriodNs = 50'000;

  template <class Counts>
  std::optional<double> longest_gap(Counts&& counts) const {
    std::optional<double> longest;
    for (std::size_t i = 1; i < returned_.size(); ++i) {
      if (!counts(returned_[i - 1], returned_[i])) continue;
      const auto gap = static_cast<double>(returned_[i] - returned_[i - 1]);
      longest = std::max(longest.value_or(0), gap);
    }
    return longest;
  }

  void end() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }

  void serve() {
    try {
      device_.use_on_this_thread();
      while (!stopping_ && returned_.size() < kMost) {
        const std::int64_t next = now_ns() + kPeriodNs;
        stream_->launch(*kernel_, {1, 1}, nullptr);
        returned_.push_back(now_ns());
        launching_ = true;
        while (now_ns() < next && !stopping_) {
        }
      }
      stream_->wait();
    } catch (...) {
      failure_ = std::current_exception();
    }
    ended_ = true;
  }

  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::int64_t> returned_;
  std::exception_ptr failure_;
  std::atomic<bool> stopping_{false}, launching_{false}, ended_{false};
  std::thread thread_;
};

class AllocationBlocking : public Case {
 public:
  explicit AllocationBlocking(const CaseContext& context)
      : device_(context.device),
        relation_(context.name.at("relation")),
        own_(device_.create_stream()),
        kernel_(device_) {
    if (relation_ == "other_device") second_ = std::make_unique<SecondGpu>(device_);
    need_cpus(device_, 2, "the caller and a thread that launches meanwhile");
    launcher_cpu_ = cpus_for_others(device_, allowed_cpus()).front();
    if (kMappedBytes > allocatable_bytes(device_)) throw Unsupported("too little memory is free");
    const std::string operation = context.name.at("operation");
    if (operation == "map" || operation == "unmap") {
      operation_ = std::make_unique<MappingCall>(device_, operation == "unmap");
    } else {
      const std::size_t space = operation.find('_');
      operation_ = std::make_unique<AllocatorCall>(
          context, *own_, operation.starts_with("release"), operation.substr(space + 1));
    }
    measure();  // what is loaded by the first call is loaded then
  }

  /// Once while no kernel runs, for what the call takes by itself; once while one does; and once
  /// beside a thread that launches, which the call would otherwise wait for too.
  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    const double idle_ns = call_of_idle_device();
    const Measured alone = measure();
    SteadyLauncher launcher(device_, launcher_cpu_);
    const Measured beside = measure();
    launcher.stop();
    block.keep(
        begin,
        alone.call_ns(),
        idle_ns,
        alone.blocked_share(idle_ns),
        launcher.longest_gap_during(beside.called, beside.returned).value_or(Block::kMissing),
        launcher.longest_gap_within(beside.launched, beside.called).value_or(Block::kMissing));
  }

  void verify_timed_work() override {
    kernel_.verify();
    if (second_) second_->verify();
  }

  std::string method() const override {
    return fmt::format("{}; beside a kernel of {} ms; {}{}",
                       operation_->method(),
                       kLongKernelNs / 1'000'000,
                       relation_,
                       second_ ? ", on " + second_->facts().name : "");
  }

 private:
  struct Measured {
    std::int64_t launched, called, returned, ended;

    double call_ns() const { return static_cast<double>(returned - called); }
    /// Of what was left of the kernel when the call was made, for a call that takes `idle_ns` by
    /// itself.
    double blocked_share(double idle_ns) const {
      if (ended <= called) throw InvalidMeasurement("the kernel had ended before the call");
      return std::clamp((call_ns() - idle_ns) / static_cast<double>(ended - called), 0.0, 1.0);
    }
  };

  double call_of_idle_device() {
    operation_->prepare();
    device_.check();
    Measured measured{};
    make_call(measured);
    operation_->put_away();
    return measured.call_ns();
  }

  Measured measure() {
    operation_->prepare();
    device_.check();
    Measured measured{};
    measured.launched = now_ns();
    launch_kernel();
    try {
      make_call(measured, kHeadStartNs);
    } catch (...) {
      wait_for_kernel();
      throw;
    }
    wait_for_kernel();
    measured.ended = now_ns();
    operation_->put_away();
    return measured;
  }

  Stream& busy_stream() { return relation_ == "same_stream" ? *own_ : kernel_.stream(); }
  void launch_kernel() {
    if (!second_) return kernel_.launch_on(busy_stream());
    second_->launch();
  }
  void wait_for_kernel() {
    if (!second_) return busy_stream().wait();
    second_->wait();
  }

  void make_call(Measured& measured, std::int64_t head_start_ns = 0) {
    if (relation_ == "other_thread") {
      call_on_other_thread(measured, head_start_ns);
    } else {
      spin_for(head_start_ns);
      call(measured);
    }
  }

  void call(Measured& measured) {
    measured.called = now_ns();
    operation_->call();
    measured.returned = now_ns();
  }

  void call_on_other_thread(Measured& measured, std::int64_t head_start_ns) {
    std::exception_ptr failure;
    std::thread([&] {
      try {
        device_.use_on_this_thread();
        spin_for(head_start_ns);
        call(measured);
      } catch (...) {
        failure = std::current_exception();
      }
    }).join();
    if (failure) std::rethrow_exception(failure);
  }

  Device& device_;
  std::string relation_;
  std::unique_ptr<Stream> own_;
  LongKernel kernel_;
  std::unique_ptr<SecondGpu> second_;  // where the kernel runs there
  int launcher_cpu_ = 0;
  std::unique_ptr<TimedOperation> operation_;
};

std::vector<std::string> operations(Profile, const DeviceFacts& facts) {
  std::vector<std::string> all;
  for (const std::string& name : allocation::allocators_of(facts)) {
    all.push_back("allocate_" + name);
    all.push_back("release_" + name);
  }
  all.insert(all.end(), {"map", "unmap"});
  return all;
}

const Registration allocation_blocking =
    benchmark("allocation/blocking")
        .asks("Does a call that allocates or gives back wait for the device?")
        .axis("operation",
              "`allocate_` and an allocator: the first block of a new one, 4 MiB; `release_` and "
              "an allocator: its only block; `map`, `unmap`: 20 MiB at reserved addresses",
              operations)
        .axis("relation",
              "where a kernel of 20 ms runs: `same_stream`, on that of the allocator; "
              "`other_stream`; `other_thread`, on another stream and launched by another thread; "
              "`other_device`, on another GPU of the session",
              {"same_stream", "other_stream", "other_thread", "other_device"})
        .needs_two_gpus([](const CaseName& name) { return name.at("relation") == "other_device"; })
        .only([](Profile profile, const DeviceFacts& facts, const CaseName& name) {
          if (profile == Profile::quick || !is_gpu(facts)) return false;
          // Every night one relation, except for what most programs call.
          const std::string& operation = name.at("operation");
          const std::string allocator = operation.substr(operation.find('_') + 1);
          const bool usual = allocator == "direct" || allocator.starts_with("pool") ||
                             operation == "map" || operation == "unmap";
          return profile == Profile::full || name.at("relation") == "other_stream" || usual;
        })
        .brings({"blocked_share",
                 "share",
                 Direction::lower_is_better,
                 "derived",
                 "By how much call_ns is more than idle_call_ns, by what was left of a kernel of "
                 "20 ms when the call was made; 0 at least and 1 at most: 1 if the call returned "
                 "only when the kernel had ended. Above 0.8 the call waits for the device, below "
                 "0.1 it does not.",
                 ""})
        .brings(host_time("idle_call_ns", "The same call while the device has nothing to do."))
        .brings(host_time("launch_gap_ns",
                          "The longest time between two launches of another thread, of which one "
                          "ends or begins during the call. That thread launches a null kernel "
                          "every 50 us, on a stream of its own."))
        .brings(host_time("quiet_gap_ns",
                          "The same in the 2 ms before the call, of times that end before it, "
                          "while the kernel runs: what the machine does by itself."))
        .metrics({"call_ns", "idle_call_ns", "blocked_share", "launch_gap_ns", "quiet_gap_ns"})
        .samples([](Profile, const CaseName&) {
          return Sampling{1, 3};  // it is the same every time, unless the machine disturbs it
        })
        .takes(0.05, 0.06)
        .one_device_at_a_time()
        .untraced()
        .makes<AllocationBlocking>();

}  // namespace
}  // namespace launchgap
