#include "benchmarks/skew_members.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <numeric>
#include <optional>
#include <random>
#include <sched.h>

#include <fmt/format.h>

#include "benchmarks/launching.h"
#include "benchmarks/team.h"
#include "harness/core/errors.h"
#include "harness/device/backend.h"
#include "harness/measure/device_work.h"
#include "kernels/kernels.h"
#include "kernels/multiply_add.h"

namespace launchgap {
namespace {

constexpr unsigned kBlockThreads = 256, kMultiplyAddSteps = 8192;
constexpr std::size_t kCopiedBytes = std::size_t{256} << 20;
constexpr int kAloneSteps = 10;
constexpr std::size_t kMostCpus = 16;

/// What `launchgap` computes on each device: numbers in registers, or a copy within its memory.
class Work {
 public:
  Work(Device& device, bool computes) : device_(device), stream_(device.create_stream()) {
    if (computes) {
      kernel_ = device.load(kernels::multiply_add_kernel);
      shape_ = {static_cast<unsigned>(device.resident_blocks(*kernel_, kBlockThreads)),
                kBlockThreads};
      to_ = device.allocate(sizeof(double) * shape_.blocks * shape_.threads);
    } else {
      from_ = device.allocate(kCopiedBytes);
      to_ = device.allocate(kCopiedBytes);
      stream_->fill_bytes(from_->address(), kRight, kCopiedBytes);
    }
    spoil();
    begin_ = device.create_event();
    end_ = device.create_event();
    enqueue();
    wait();
    verify();
  }

  void enqueue() {
    stream_->record(*begin_);
    if (kernel_) {
      void* results = to_->address();
      unsigned steps = kMultiplyAddSteps;
      int in_double = 0;
      double factor = 1, addend = 1;
      void* arguments[] = {&results, &steps, &in_double, &factor, &addend};
      stream_->launch(*kernel_, shape_, arguments);
    } else {
      stream_->copy(
          to_->address(), from_->address(), kCopiedBytes, CopyDirection::device_to_device);
    }
    stream_->record(*end_);
  }
  void wait() { stream_->wait(); }
  /// Of the last one that was waited for.
  double elapsed_ns() { return device_.elapsed_ns(*begin_, *end_); }
  /// A result that was not written again must not pass for one.
  void spoil() { stream_->fill_bytes(to_->address(), 0xFF, to_->bytes()); }

  /// Throws WrongResult.
  void verify() {
    device_.check();
    if (!kernel_) return expect_bytes(device_, *to_, kRight);
    std::vector<double> results(to_->bytes() / sizeof(double));
    device_.read(*to_, 0, results.data(), to_->bytes());
    for (std::size_t thread = 0; thread < results.size(); ++thread) {
      const double expected = kernels::multiply_add_count(thread, kMultiplyAddSteps);
      if (results[thread] != expected)
        throw WrongResult("{}: thread {} has computed {}, and {} is right",
                          device_.facts().uuid,
                          thread,
                          results[thread],
                          expected);
    }
  }

 private:
  static constexpr unsigned char kRight = 7;

  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  LaunchShape shape_{};
  std::unique_ptr<Buffer> from_, to_;
  std::unique_ptr<Event> begin_, end_;
};

/// A device with its work; the first one belongs to the process, the others to this.
class Gpu {
 public:
  Gpu(Device& device, bool computes) : device_(&device) { work_.emplace(device, computes); }
  Gpu(std::unique_ptr<Device> own, bool computes) : own_(std::move(own)), device_(own_.get()) {
    try {
      work_.emplace(*device_, computes);
    } catch (...) {
      own_.reset();
      throw;
    }
  }
  ~Gpu() {
    try {
      device_->use_on_this_thread();
      work_.reset();
      own_.reset();
    } catch (const std::exception&) {  // a context is lost, and what was in it too
    }
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  void use() { device_->use_on_this_thread(); }
  Work& work() { return *work_; }
  const std::string& uuid() const { return device_->facts().uuid; }

 private:
  std::unique_ptr<Device> own_;
  Device* device_;
  std::optional<Work> work_;
};

/// Processor time of the calling thread.
std::int64_t thread_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// GPUs, or streams that stand for some where there is one.
class Gpus : public Members {
 public:
  Gpus(const CaseContext& context, bool computes, bool threads)
      : first_(context.device), random_(std::random_device{}()) {
    std::vector<std::string> others;
    for (const DeviceFacts& facts : probe_devices(first_.facts().backend)) {
      if (facts.uuid != first_.facts().uuid && facts.usable) others.push_back(facts.uuid);
    }
    alone_ = others.empty();
    const std::size_t count = alone_ ? kStreams : others.size() + 1;
    if (threads) need_cpus(first_, count, "threads, one for each GPU,");
    try {
      gpus_.push_back(std::make_unique<Gpu>(first_, computes));
      for (std::size_t i = 1; alone_ && i < kStreams; ++i)
        gpus_.push_back(std::make_unique<Gpu>(first_, computes));
      for (const std::string& uuid : others)
        gpus_.push_back(std::make_unique<Gpu>(open_device(first_.facts().backend, uuid), computes));
    } catch (...) {
      close();
      throw;
    }
    first_.use_on_this_thread();
    steps_.resize(gpus_.size());
    order_.resize(gpus_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    if (threads) {
      std::ranges::shuffle(order_, random_);  // a thread, and its CPU, are no device's for ever
      team_.emplace(first_, static_cast<int>(gpus_.size()), [this](int member) {
        const std::size_t i = order_[static_cast<std::size_t>(member)];
        gpus_[i]->use();
        submit(i);
        collect(i);
      });
    }
  }
  ~Gpus() override { close(); }

  bool valid() const override { return !alone_; }
  std::size_t size() const override { return gpus_.size(); }
  std::string name(std::size_t member) const override {
    return alone_ ? fmt::format("{} stream {}", gpus_[0]->uuid(), member) : gpus_[member]->uuid();
  }

  const std::vector<Step>& step() override {
    begin_ = now_ns();
    if (team_) {
      team_->run();
    } else {
      // The first that is launched on is another one each time: its place is not the device's.
      std::ranges::shuffle(order_, random_);
      for (const std::size_t i : order_) {
        gpus_[i]->use();
        submit(i);
      }
      for (const std::size_t i : order_) {
        gpus_[i]->use();
        collect(i);
        steps_[i].waited_first = i == order_.front();
      }
    }
    first_.use_on_this_thread();
    return steps_;
  }

  double alone_ns(std::size_t member) override {
    std::vector<double> times;
    gpus_[member]->use();
    for (int i = 0; i < kAloneSteps; ++i) {
      submit(member);
      collect(member);
      times.push_back(steps_[member].work);
    }
    first_.use_on_this_thread();
    std::ranges::sort(times);
    return times[times.size() / 2];
  }

  void spoil() override {
    for (const auto& gpu : gpus_) {
      gpu->use();
      gpu->work().spoil();
      gpu->work().wait();
    }
    first_.use_on_this_thread();
  }
  void verify() override {
    for (const auto& gpu : gpus_) {
      gpu->use();
      gpu->work().verify();
    }
    first_.use_on_this_thread();
  }

  std::string method() const override {
    return fmt::format("{} {}, launched on from {}",
                       gpus_.size(),
                       alone_ ? "streams of one GPU" : "GPUs",
                       team_ ? "a thread each" : "one thread, in another order each time");
  }

 private:
  static constexpr std::size_t kStreams = 2;

  /// The host's part is the call where one thread makes all, and else begins with the step.
  void submit(std::size_t i) {
    Step& step = steps_[i];
    const std::int64_t called = now_ns();
    gpus_[i]->work().enqueue();
    step.returned = now_ns();
    step.begin = team_ ? begin_ : called;
  }
  void collect(std::size_t i) {
    gpus_[i]->work().wait();
    steps_[i].seen = now_ns();
    steps_[i].work = gpus_[i]->work().elapsed_ns();
  }

  void close() noexcept {
    team_.reset();
    while (gpus_.size() > 1) gpus_.pop_back();
    try {
      first_.use_on_this_thread();
    } catch (const std::exception&) {
    }
    gpus_.clear();
  }

  Device& first_;
  std::mt19937_64 random_;
  bool alone_ = false;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::vector<Step> steps_;
  std::vector<std::size_t> order_;
  std::int64_t begin_ = 0;
  std::optional<Team> team_;
};

/// CPUs of the host, each with a thread of its own: the same with what CI has.
class Cpus : public Members {
 public:
  explicit Cpus(const CaseContext& context) {
    const std::size_t count = std::min(context.device.cpus().size(), kMostCpus);
    need_cpus(context.device, 2, "threads, one for each CPU,");
    steps_.resize(count);
    cpus_.resize(count);
    results_.assign(count, 0);
    team_.emplace(context.device, static_cast<int>(count), [this](int member) {
      const auto i = static_cast<std::size_t>(member);
      if (only_ >= 0 && only_ != member) return;
      work(i);
    });
    step();
    verify();
  }

  std::size_t size() const override { return steps_.size(); }
  std::string name(std::size_t member) const override {
    return fmt::format("cpu{}", cpus_[member]);
  }

  const std::vector<Step>& step() override {
    begin_ = now_ns();
    team_->run();
    return steps_;
  }

  double alone_ns(std::size_t member) override {
    std::vector<double> times;
    only_ = static_cast<int>(member);
    for (int i = 0; i < kAloneSteps; ++i) times.push_back(step()[member].work);
    only_ = -1;
    std::ranges::sort(times);
    return times[times.size() / 2];
  }

  void verify() override {
    constexpr double expected = kernels::multiply_add_count(0, kMultiplyAddSteps);
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (results_[i] != expected)
        throw WrongResult(
            "CPU {} has computed {}, and {} is right", cpus_[i], results_[i], expected);
    }
  }
  void spoil() override { std::ranges::fill(results_, 0); }

  std::string method() const override {
    return fmt::format("{} CPUs, a thread each, the same work in registers", steps_.size());
  }

 private:
  void work(std::size_t i) {
    Step& step = steps_[i];
    const std::int64_t called = now_ns(), own_begin = thread_ns();
    double* results = &results_[i];
    unsigned count = kMultiplyAddSteps;
    int in_double = 0;
    double factor = 1, addend = 1;
    void* arguments[] = {&results, &count, &in_double, &factor, &addend};
    kernels::multiply_add_kernel.host(arguments, {1, 1});
    const std::int64_t own = thread_ns() - own_begin;
    step.seen = now_ns();
    step.begin = begin_;
    // What it was not on its CPU is no part of its work.
    step.work = static_cast<double>(std::min(own, step.seen - called));
    step.returned = step.seen - static_cast<std::int64_t>(step.work);
    cpus_[i] = sched_getcpu();
  }

  std::vector<Step> steps_;
  std::vector<int> cpus_;
  std::vector<double> results_;
  std::int64_t begin_ = 0;
  std::atomic<int> only_{-1};
  std::optional<Team> team_;
};

}  // namespace

std::unique_ptr<Members> make_members(const CaseContext& context) {
  if (!is_gpu(context.device.facts())) return std::make_unique<Cpus>(context);
  return std::make_unique<Gpus>(
      context, context.name.at("work") == "compute", context.name.at("threads") == "each");
}

}  // namespace launchgap
