// Launches as others have measured and published them, by their definitions, so that their figures
// can be laid beside ours: data/launch_anchors.csv. Where they used the CUDA runtime, this is the
// driver API; launch/api says what that changes.
#include <algorithm>
#include <limits>

#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "harness/device/device.h"
#include "harness/summary/adviser.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

/// All of them launch into the legacy default stream.
std::unique_ptr<Stream> usual_stream(Device& device) {
  return can(device.facts(), Capability::use_default_stream) ? device.default_stream()
                                                             : device.create_stream();
}

/// Theirs wait for the device, once: a second wait, though nothing is left, would be timed too. The
/// host waits for streams only.
void wait_for_all(Device& device, Stream& stream) {
  if (!can(device.facts(), Capability::wait_for_all)) return stream.wait();
  device.check();
}

/// eth-cscs/cscs-reframe-tests at 2f81355, kernel_latency: 5,000 launches of an empty kernel, <<<1,
/// 1>>>, with one wait at the end, or one after each; wall time by launches.
class Cscs : public Case {
 public:
  explicit Cscs(const CaseContext& context)
      : device_(context.device),
        stream_(usual_stream(device_)),
        kernel_(device_.load(kernels::null_kernel)),
        wait_each_(context.name.at("wait") == "each") {
    verify_launches(device_, *stream_);
    stream_->launch(*kernel_, {1, 1}, nullptr);
    wait_for_all(device_, *stream_);
  }

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    for (int i = 0; i < kLaunches; ++i) {
      stream_->launch(*kernel_, {1, 1}, nullptr);
      if (wait_each_) wait_for_all(device_, *stream_);
    }
    wait_for_all(device_, *stream_);
    const std::int64_t end = now_ns();
    block.keep(begin, static_cast<double>(end - begin) / kLaunches);
  }

  std::string method() const override {
    return fmt::format("{}, {} launches", launch_method(*kernel_, device_.facts()), kLaunches);
  }

 private:
  static constexpr int kLaunches = 5000;

  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  bool wait_each_;
};

/// microsoft/superbenchmark at 700d650, kernel-launch: the mean over launches of an empty kernel,
/// each waited for, of the time between two events around it, or of the host's time until the
/// device is idle again. Theirs takes 100 for warm-up and 2,000,000; here a sample is 2,000 of
/// them. Theirs reads the host's clock in whole milliseconds.
class SuperBench : public Case {
 public:
  explicit SuperBench(const CaseContext& context)
      : device_(context.device),
        stream_(usual_stream(device_)),
        kernel_(device_.load(kernels::null_kernel)),
        by_events_(context.name.at("mode") == "event"),
        begin_(device_.create_event()),
        end_(device_.create_event()) {
    verify_launches(device_, *stream_);
    for (int i = 0; i < kWarmUps; ++i) step();
  }

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    double total = 0;
    for (int i = 0; i < kSteps; ++i) total += step();
    block.keep(begin, total / kSteps);
  }

  std::string method() const override {
    return fmt::format(
        "{}, {} launches per sample", launch_method(*kernel_, device_.facts()), kSteps);
  }

 private:
  static constexpr int kWarmUps = 100;
  static constexpr int kSteps = 2000;

  double step() {
    if (by_events_) {
      stream_->record(*begin_);
      stream_->launch(*kernel_, {1, 1}, nullptr);
      stream_->record(*end_);
      end_->wait();
      return device_.elapsed_ns(*begin_, *end_);
    }
    const std::int64_t begin = now_ns();
    stream_->launch(*kernel_, {1, 1}, nullptr);
    wait_for_all(device_, *stream_);
    return static_cast<double>(now_ns() - begin);
  }

  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  bool by_events_;
  std::unique_ptr<Event> begin_, end_;
};

/// te42kyfo/gpu-benches at 1c36d50, gpu-small-kernels: a[i] = b[i] / 4 over and over on arrays that
/// fit the caches, by launches, by one graph, and by one kernel with a barrier of the grid after
/// each pass, launched cooperatively or not. As theirs, it takes the fastest size of blocks; 2,000
/// passes are the fewest that theirs makes, 30,000 the most. `kib` counts both arrays.
class SmallKernels : public Case {
 public:
  explicit SmallKernels(const CaseContext& context)
      : device_(context.device),
        method_(context.name.at("method")),
        size_(static_cast<int>(context.name.number("kib") * 1024 / (2 * sizeof(double)))),
        // A stream that can be captured.
        stream_(method_ == "graph" ? device_.create_stream() : usual_stream(device_)),
        kernel_(
            device_.load(in_one_launch() ? kernels::scale_repeated_kernel : kernels::scale_kernel)),
        a_(device_.allocate(bytes())),
        b_(device_.allocate(bytes())),
        arrivals_(device_.allocate(sizeof(Arrivals))) {
    verify();
    choose_block_size();
    timed_passes(kPasses);  // a graph's first launch is not like the others
  }

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    const double per_pass_ns = timed_passes(kPasses);
    block.keep(begin, per_pass_ns);
  }
  void verify_timed_work() override {
    if (in_one_launch()) verify_arrivals(kPasses);
    verify();
  }

  std::string method() const override {
    return fmt::format("{}, {} passes, blocks of {} threads",
                       launch_method(*kernel_, device_.facts()),
                       kPasses,
                       threads_);
  }

 private:
  /// What the kernel leaves (kernels/scale_repeated.cu).
  struct Arrivals {
    unsigned blocks, early;
  };
  static constexpr int kPasses = 2000;
  static constexpr int kTrialPasses = 200;

  bool in_one_launch() const { return method_ == "cooperative" || method_ == "persistent"; }
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * sizeof(double); }

  void choose_block_size() {
    unsigned best = 0;
    double shortest = std::numeric_limits<double>::infinity();
    for (threads_ = 32; threads_ <= 1024; threads_ *= 2) {
      prepare(kTrialPasses);
      timed_passes(kTrialPasses);
      if (const double time = timed_passes(kTrialPasses); time < shortest) {
        shortest = time;
        best = threads_;
      }
    }
    threads_ = best;
    prepare(kPasses);
  }

  void prepare(int passes) {
    if (method_ != "graph") return;
    executable_ = device_.instantiate(*device_.capture(*stream_, [&] { launch_each(passes); }));
    executable_->upload(*stream_);
    stream_->wait();
  }

  /// Nanoseconds for each pass.
  double timed_passes(int passes) {
    if (in_one_launch()) clear_arrivals();
    const std::int64_t begin = now_ns();
    if (in_one_launch()) {
      launch_repeated(passes);
    } else if (executable_) {
      executable_->launch(*stream_);
    } else {
      launch_each(passes);
    }
    stream_->wait();
    return static_cast<double>(now_ns() - begin) / passes;
  }

  /// From one array to the other and back.
  void launch_each(int passes) {
    const auto blocks = static_cast<unsigned>(size_) / threads_ + 1;
    for (int i = 0; i < passes; ++i) {
      void* to = i % 2 == 0 ? a_->address() : b_->address();
      void* from = i % 2 == 0 ? b_->address() : a_->address();
      void* arguments[] = {&to, &from, &size_};
      stream_->launch(*kernel_, {blocks, threads_}, arguments);
    }
  }

  /// As many blocks as the device holds at once, since they wait for each other.
  unsigned resident_blocks() const {
    const auto resident =
        static_cast<unsigned>(device_.resident_blocks(*kernel_, static_cast<int>(threads_)));
    return std::max(1u, std::min(static_cast<unsigned>(size_) / threads_, resident));
  }

  void launch_repeated(int passes) {
    const unsigned blocks = resident_blocks();
    void* to = a_->address();
    void* from = b_->address();
    void* arrivals = arrivals_->address();
    void* arguments[] = {&to, &from, &size_, &passes, &arrivals};
    if (method_ == "cooperative") {
      stream_->launch_cooperative(*kernel_, {blocks, threads_}, arguments);
    } else {
      stream_->launch(*kernel_, {blocks, threads_}, arguments);
    }
  }

  void clear_arrivals() {
    stream_->fill_bytes(arrivals_->address(), 0, sizeof(Arrivals));
    stream_->wait();
  }

  /// Every block came to the barrier after each pass, and no thread left it before.
  void verify_arrivals(int passes) {
    const unsigned expected = resident_blocks() * static_cast<unsigned>(passes);
    Arrivals arrivals{};
    device_.read(*arrivals_, 0, &arrivals, sizeof arrivals);
    if (arrivals.blocks != expected) {
      throw WrongResult("{} blocks came to barriers where {} had to", arrivals.blocks, expected);
    }
    if (arrivals.early != 0) {
      throw WrongResult(
          "the grid's barrier does not hold: {} times a thread was beyond it before all blocks had "
          "come",
          arrivals.early);
    }
  }

  /// One pass makes each element of `a` a quarter of what is in `b`: 0x40…40 is 32.5…, as double.
  void verify() {
    stream_->fill_bytes(b_->address(), 0x40, bytes());
    stream_->fill_bytes(a_->address(), 0xFF, bytes());
    if (in_one_launch()) {
      clear_arrivals();
      launch_repeated(1);
    } else if (method_ == "graph") {
      const auto graph = device_.instantiate(*device_.capture(*stream_, [&] { launch_each(1); }));
      graph->launch(*stream_);
      stream_->wait();
    } else {
      launch_each(1);
    }
    stream_->wait();
    if (in_one_launch()) verify_arrivals(1);
    std::vector<double> given(static_cast<std::size_t>(size_)), made(given.size());
    device_.read(*b_, 0, given.data(), bytes());
    device_.read(*a_, 0, made.data(), bytes());
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (made[i] != given[i] / 4) {
        throw WrongResult("element {} is {} and not a quarter of {}", i, made[i], given[i]);
      }
    }
  }

  Device& device_;
  std::string method_;
  int size_;
  unsigned threads_ = 256;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Buffer> a_, b_, arrivals_;
  std::unique_ptr<ExecutableGraph> executable_;
};

void advise_on_waiting(Adviser& adviser) {
  const auto comparisons = adviser.rows.compare_axis({}, "wall_per_launch_ns", "wait", "end");
  adviser.judge(comparisons,
                {.of = "with a wait after each",
                 .than = "with one wait at the end",
                 .if_more = "Do not wait after each launch",
                 .if_less = "Waiting after each launch does no harm",
                 .if_same = "Waiting after each launch costs nothing",
                 .less = Severity::note});
}

void advise_on_small_kernels(Adviser& adviser) {
  for (const char* method : {"graph", "cooperative", "persistent"}) {
    const auto sizes = adviser.rows.values({{"method", method}}, "per_kernel_ns", "kib");
    if (sizes.empty()) continue;
    const auto row = [&](const char* which) {
      return adviser.rows.find({{"method", which}, {"kib", sizes.front()}}, "per_kernel_ns");
    };
    const std::string how = std::string_view(method) == "graph"
                                ? "in a graph"
                                : fmt::format("as steps of one {} kernel", method);
    const auto comparison = compare(row(method), row("stream"));
    if (!comparison) continue;
    adviser.judge({*comparison},
                  {.of = fmt::format("of {} KiB {}", sizes.front(), how),
                   .than = "launched one by one",
                   .if_more = "Launch small kernels one by one rather than " + how,
                   .if_less = "Run small dependent kernels " + how,
                   .if_same = "Running small kernels " + how + " gains nothing"});
  }
}

std::vector<FigureLine> by_method() {
  std::vector<FigureLine> lines;
  for (const std::string method : {"stream", "graph", "cooperative", "persistent"})
    lines.push_back({method, {{"method", method}}, "per_kernel_ns"});
  return lines;
}

const Registration cscs =
    benchmark("launch/cscs")
        .asks("What does waiting after each launch cost?")
        .axis("wait", "once at the `end`, or after `each` launch", {"end", "each"})
        .brings(host_time(
            "wall_per_launch_ns",
            "As others publish it: the host's time from the first launch until the last wait has "
            "returned, divided by the number of launches. The case says where it waits.",
            "",
            "the time per launch"))
        .metrics({"wall_per_launch_ns"})
        .samples({1, 1}, {1, 3})
        .takes([](const DeviceFacts&, const CaseName& name, Sampling sampling) {
          const double launch = name.at("wait") == "each" ? 1.2e-5 : 4e-6;
          return 0.02 + 5000 * launch * sampling.blocks * sampling.samples;
        })
        .one_device_at_a_time()
        .untraced()
        .advises(advise_on_waiting)
        .draws({{"Per launch",
                 {{"end", {{"wait", "end"}}, "wall_per_launch_ns"},
                  {"each", {{"wait", "each"}}, "wall_per_launch_ns"}}}})
        .makes<Cscs>();

const Registration superbench =
    benchmark("launch/superbench")
        .asks("What do launches take as SuperBench measures and publishes them?")
        .axis("mode",
              "the clock: an `event` before and after each launch, or the host's (`wall`)",
              {"event", "wall"})
        .brings(device_time("event_per_launch_ns",
                            "As others publish it: time between an event before and an event after "
                            "each launch, mean over the launches.",
                            "the call"))
        .metrics([](const CaseName& name) -> std::vector<std::string_view> {
          return {name.at("mode") == "event" ? "event_per_launch_ns" : "wall_per_launch_ns"};
        })
        .samples([](Profile profile, const CaseName&) {
          const int samples = profile == Profile::quick ? 1 : profile == Profile::nightly ? 3 : 50;
          return Sampling{1, samples};
        })
        .takes([](const DeviceFacts&, const CaseName&, Sampling sampling) {
          return 0.02 + 2000 * 2e-5 * sampling.blocks * sampling.samples;
        })
        .one_device_at_a_time()
        .untraced()
        .makes<SuperBench>();

std::vector<std::string> small_methods(Profile, const DeviceFacts& facts) {
  if (!can(facts, Capability::launch_cooperatively)) return {"stream"};
  return {"stream", "graph", "cooperative", "persistent"};
}

std::vector<std::string> small_sizes(Profile profile, const DeviceFacts& facts) {
  if (!can(facts, Capability::run_many_blocks)) return {"64"};
  if (profile == Profile::quick) return {"64"};
  return {"64", "128", "256", "512", "1024"};
}

const Registration small_kernels =
    benchmark("launch/small_kernels")
        .asks("What do small dependent kernels cost, and by which way of running them?")
        .axis("method",
              "launches into a `stream`, a `graph`, or steps of one kernel, `cooperative` or "
              "`persistent`",
              small_methods)
        .axis("kib", "KiB that a kernel works on", small_sizes)
        .metrics({"per_kernel_ns"})
        .samples({1, 1}, {1, 3})
        .takes([](const DeviceFacts&, const CaseName&, Sampling sampling) {
          return 0.02 + 2000 * 4e-6 * (sampling.blocks * sampling.samples + 12);
        })
        .one_device_at_a_time()
        .untraced()
        .advises(advise_on_small_kernels)
        .draws({{.caption = "Per kernel, over its data",
                 .lines = by_method(),
                 .axis = "kib",
                 .axis_unit = "KiB",
                 .each_device = true}})
        .makes<SmallKernels>();

}  // namespace
}  // namespace launchgap
