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
#include "harness/device/collective.h"
#include "harness/measure/device_work.h"
#include "kernels/kernels.h"
#include "kernels/multiply_add.h"

namespace launchgap {
namespace {

constexpr unsigned kBlockThreads = 256, kMultiplyAddSteps = 8192;
constexpr unsigned kHostSteps = 56 * kMultiplyAddSteps;  // about a millisecond of a CPU
constexpr std::size_t kCopiedBytes = std::size_t{256} << 20;
constexpr int kAloneSteps = 10;
constexpr std::size_t kMostCpus = 16;

/// What a case is about.
struct Kind {
  bool computes = true;  // or copies
  bool threads = false;  // one for each device
  bool sums = false;     // all devices, behind the work of a step
};

/// What `launchgap` computes on each device: numbers in registers, or a copy within its memory. And
/// a number behind it, for the sum of all.
class Work {
 public:
  Work(Device& device, const Kind& kind) : device_(device), stream_(device.create_stream()) {
    if (kind.computes) {
      kernel_ = device.load(kernels::multiply_add_kernel);
      shape_ = {static_cast<unsigned>(device.resident_blocks(*kernel_, kBlockThreads)),
                kBlockThreads};
      to_ = device.allocate(sizeof(double) * shape_.blocks * shape_.threads);
    } else {
      from_ = device.allocate(kCopiedBytes);
      to_ = device.allocate(kCopiedBytes);
      stream_->fill_bytes(from_->address(), kRight, kCopiedBytes);
    }
    if (kind.sums) {
      given_ = device.allocate(sizeof(float));
      sum_ = device.allocate(sizeof(float));
      summed_ = device.create_event();
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
  void spoil() {
    stream_->fill_bytes(to_->address(), 0xFF, to_->bytes());
    if (sum_) stream_->fill_bytes(sum_->address(), 0xFF, sum_->bytes());
  }

  // --- The sum of all devices ---

  /// What this device gives.
  void give(float number) {
    stream_->copy(given_->address(), &number, sizeof number, CopyDirection::host_to_device);
    stream_->wait();
  }
  Collective::Part part() { return {stream_.get(), given_.get(), sum_.get()}; }
  /// Behind the sum.
  void record_sum() { stream_->record(*summed_); }
  /// From the end of the work until the sum is there.
  double sum_ns() { return device_.elapsed_ns(*end_, *summed_); }
  /// Throws WrongResult.
  void verify_sum(float expected) {
    float sum = 0;
    device_.read(*sum_, 0, &sum, sizeof sum);
    if (sum != expected)
      throw WrongResult(
          "{}: the sum of all devices is {}, and {} is right", device_.facts().uuid, sum, expected);
  }

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
  std::unique_ptr<Buffer> from_, to_, given_, sum_;
  std::unique_ptr<Event> begin_, end_, summed_;
};

/// A device with its work; the first one belongs to the process, the others to this.
class Gpu {
 public:
  Gpu(Device& device, const Kind& kind) : device_(&device) { work_.emplace(device, kind); }
  Gpu(std::unique_ptr<Device> own, const Kind& kind) : own_(std::move(own)), device_(own_.get()) {
    try {
      work_.emplace(*device_, kind);
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
  Device* device() { return device_; }
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
  Gpus(const CaseContext& context, const Kind& kind)
      : first_(context.device), random_(std::random_device{}()) {
    std::vector<std::string> others;
    for (const DeviceFacts& facts : probe_devices(first_.facts().backend)) {
      if (facts.uuid != first_.facts().uuid && facts.usable) others.push_back(facts.uuid);
    }
    alone_ = others.empty();
    if (kind.sums && !alone_ && !first_.kernels_may_wait())
      throw Unsupported(
          "a launch returns only when its kernel has ended, and the sum of a device ends "
          "only when those of the others are launched");
    const std::size_t count = alone_ ? kStreams : others.size() + 1;
    if (kind.threads) need_cpus(first_, count, "threads, one for each GPU,");
    try {
      gpus_.push_back(std::make_unique<Gpu>(first_, kind));
      for (std::size_t i = 1; alone_ && i < kStreams; ++i)
        gpus_.push_back(std::make_unique<Gpu>(first_, kind));
      for (const std::string& uuid : others)
        gpus_.push_back(std::make_unique<Gpu>(open_device(first_.facts().backend, uuid), kind));
      if (kind.sums) open_sums();
    } catch (...) {
      close();
      throw;
    }
    first_.use_on_this_thread();
    steps_.resize(gpus_.size());
    order_.resize(gpus_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    // What NCCL does at the first sum alone may need all devices: before there are threads.
    step();
    verify();
    if (kind.threads) {
      std::ranges::shuffle(order_, random_);  // a thread, and its CPU, are no device's for ever
      team_.emplace(
          first_,
          static_cast<int>(gpus_.size()),
          [this](int member) {
            const std::size_t i = order_[static_cast<std::size_t>(member)];
            gpus_[i]->use();
            submit(i);
            if (!sums_.empty()) sum(i);
            collect(i);
          },
          [this] {
            for (const auto& sums : sums_) sums->abort();
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
      if (!sums_.empty()) sum_all();
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
      gpus_[member]->work().enqueue();
      gpus_[member]->work().wait();
      times.push_back(gpus_[member]->work().elapsed_ns());
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
    const auto count = static_cast<float>(gpus_.size());
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      gpus_[i]->use();
      gpus_[i]->work().verify();
      if (!sums_.empty())
        gpus_[i]->work().verify_sum(alone_ ? number_of(i) : count * (count + 1) / 2);
    }
    first_.use_on_this_thread();
  }

  std::string method() const override {
    return fmt::format("{} {}, launched on from {}{}",
                       gpus_.size(),
                       alone_ ? "streams of one GPU" : "GPUs",
                       team_ ? "a thread each" : "one thread, in another order each time",
                       sums_.empty() ? "" : "; behind it NCCL's sum of 4 bytes of each");
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
    if (!sums_.empty()) steps_[i].sum = gpus_[i]->work().sum_ns();
  }

  static float number_of(std::size_t i) { return static_cast<float>(i + 1); }
  /// Of all devices; of one, whose streams stand for several, one for each stream.
  void open_sums() {
    std::vector<Device*> devices;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      gpus_[i]->use();
      gpus_[i]->work().give(number_of(i));
      devices.push_back(gpus_[i]->device());
      if (alone_) sums_.push_back(open_collective({&devices.back(), 1}));
    }
    if (!alone_) sums_.push_back(open_collective(devices));
  }
  void sum(std::size_t i) {
    sums_[alone_ ? i : 0]->all_reduce(alone_ ? 0 : i, gpus_[i]->work().part(), 1);
    gpus_[i]->work().record_sum();
  }
  void sum_all() {
    if (!alone_) {
      std::vector<Collective::Part> parts;
      for (const auto& gpu : gpus_) parts.push_back(gpu->work().part());
      try {
        sums_[0]->all_reduce(parts, 1);
      } catch (...) {
        sums_[0]->abort();
        throw;
      }
    }
    for (const std::size_t i : order_) {
      gpus_[i]->use();
      if (alone_) {
        sum(i);
      } else {
        gpus_[i]->work().record_sum();
      }
    }
  }

  void close() noexcept {
    team_.reset();
    sums_.clear();
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
  std::vector<std::unique_ptr<Collective>> sums_;  // none where they do not sum
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
    constexpr double expected = kernels::multiply_add_count(0, kHostSteps);
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
    unsigned count = kHostSteps;
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
  return std::make_unique<Gpus>(context,
                                Kind{.computes = context.name.at("work") == "compute",
                                     .threads = context.name.at("threads") == "each",
                                     .sums = context.name.at("collective") != "none"});
}

}  // namespace launchgap
