// What everything costs that a fresh process does before its launches are as fast as usual:
// starting the driver, making a context, loading a module, and the first launch itself. A process
// is one sample.
#include <array>
#include <span>

#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/summary/adviser.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

class FirstLaunch : public Case {
 public:
  explicit FirstLaunch(const CaseContext& context)
      : device_(context.device), loading_(context.name.at("loading")) {}

  /// Nothing has been loaded before, and the driver's and the context's start have been timed when
  /// the device was opened.
  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    stream_ = device_.create_stream();
    const std::int64_t streamed = now_ns();
    const std::int64_t loading = now_ns();
    kernel_ = device_.load(*kernels::arguments_kernel(sizeof(StoredValue)));
    const std::int64_t loaded = now_ns();
    // Nothing may clear this memory: the device would do that with a kernel, before the first one.
    words_ = device_.allocate(2 * sizeof(unsigned));
    value_ = static_cast<unsigned>(begin) | 1;
    const Launched first = launch(0);
    const Launched second = launch(1);
    if (!can(device_.facts(), Capability::load_code)) {
      block.keep(begin, streamed - begin, first.call_ns, first.roundtrip_ns, second.roundtrip_ns);
      return;
    }
    const Opening opening = device_.opening();
    block.keep(begin,
               opening.initialise_ns.value_or(Block::kMissing),
               opening.context_ns.value_or(Block::kMissing),
               from_unknown_cache() ? Block::kMissing : static_cast<double>(loaded - loading),
               first.call_ns,
               first.roundtrip_ns,
               second.roundtrip_ns);
  }

  void verify_timed_work() override {
    unsigned words[2] = {0, 0};
    device_.read(*words_, 0, words, sizeof words);
    for (unsigned i = 0; i < 2; ++i) {
      if (words[i] != value_ + i) {
        throw WrongResult(
            "launch {} of a kernel that stores {} left {}", i + 1, value_ + i, words[i]);
      }
    }
  }

  std::string method() const override {
    return fmt::format("a fresh process, loading: {}", loading_);
  }

 private:
  struct Launched {
    std::int64_t call_ns, roundtrip_ns;
  };

  /// Without machine code for this device the driver compiles, and where nobody said where its
  /// cache is, whether it did so before depends on what ran on this machine.
  bool from_unknown_cache() const {
    return kernel_->compiled_by_driver() && !loading_.starts_with("jit_");
  }

  /// Of kernels/arguments.cu: the last one is stored.
  struct StoredValue {
    unsigned* to;
    unsigned words[2];
  };

  Launched launch(unsigned word) {
    StoredValue value{static_cast<unsigned*>(words_->address()) + word, {0, value_ + word}};
    void* arguments[] = {&value};
    const std::int64_t called = now_ns();
    stream_->launch(*kernel_, {1, 1}, arguments);
    const std::int64_t returned = now_ns();
    stream_->wait();
    return {returned - called, now_ns() - called};
  }

  Device& device_;
  std::string loading_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Buffer> words_;
  unsigned value_ = 0;
};

std::vector<std::string> first_ways(Profile, const DeviceFacts& facts) {
  if (!can(facts, Capability::load_code)) return {"none"};
  return {"lazy", "eager", "jit_cached", "jit_uncached"};
}

/// What a process does until its first kernel is done, and what of it compiled code can change.
constexpr std::array<const char*, 4> kUntilFirst = {"initialise_ns",
                                                    "context_ns",
                                                    "module_ns",
                                                    "first_roundtrip_ns"};
constexpr std::span kOfCode = std::span(kUntilFirst).last<2>();

/// Per process, the time of all of these steps that were measured. Empty if a step lacks a process
/// that another has, or a GPU's module was not timed: the sum would be without it, and that of
/// another way of loading with it.
std::vector<double> time_of(std::span<const char* const> steps,
                            const BenchmarkRows& rows,
                            const Params& params) {
  std::vector<double> sums;
  if (rows.find(params, "initialise_ns") && !rows.find(params, "module_ns")) return {};
  for (const char* metric : steps) {
    const SummaryRow* const row = rows.find(params, metric);
    if (!row) continue;
    if (sums.empty()) sums.assign(row->run_medians.size(), 0);
    if (sums.size() != row->run_medians.size()) return {};
    std::ranges::transform(sums, row->run_medians, sums.begin(), std::plus<>());
  }
  return sums;
}

/// How long `steps` take, which `what` is.
void loading(Adviser& adviser,
             const char* value,
             const char* reference,
             std::span<const char* const> steps,
             const std::string& what,
             const Words& words) {
  std::vector<Comparison> comparisons;
  for (const char* metric : kOfCode) {
    const auto row = [&](const char* loading) {
      return adviser.rows.find({{"loading", loading}}, metric);
    };
    if (const auto comparison = compare(row(value), row(reference)))
      comparisons.push_back(*comparison);
  }
  const auto ours = time_of(steps, adviser.rows, {{"loading", value}}),
             theirs = time_of(steps, adviser.rows, {{"loading", reference}});
  if (comparisons.empty() || ours.empty() || theirs.empty()) return;
  const Ratio total = ratio_of(ours, theirs);
  if (!total.claims()) return adviser.judge(total, "the " + what, words, comparisons);
  const double change = *stats::mean(ours) - *stats::mean(theirs);
  adviser.say(change > 0 ? words.more : words.less,
              fmt::format("{}: the {} is {} {} as {} ({} {}).",
                          change > 0 ? words.if_more : words.if_less,
                          what,
                          fmt::format("{} times as long", times_text(*total.value)),
                          words.of,
                          words.than,
                          quantity(std::abs(change), "ns"),
                          change > 0 ? "more" : "less"),
              comparisons,
              {},
              evidence_of(total, what));
}

void advise_on_first(Adviser& adviser) {
  for (const char* load : {"lazy", "none"}) {
    const Params params = {{"loading", load}};
    const SummaryRow* const trip = adviser.rows.find(params, "first_roundtrip_ns");
    const SummaryRow* const second = adviser.rows.find(params, "second_roundtrip_ns");
    const auto comparison = compare(trip, second);
    const auto total = time_of(kUntilFirst, adviser.rows, params);
    if (!comparison) continue;
    adviser.say(Severity::note,
                fmt::format("{}first round trip takes {}, the second {}.",
                            total.empty()
                                ? "A fresh process's "
                                : fmt::format("A fresh process takes {} until its first kernel is "
                                              "done; its ",
                                              quantity(stats::mean(total), "ns")),
                            level_text(*trip),
                            level_text(*second)),
                {*comparison},
                {adviser.rows.find(params, "initialise_ns"),
                 adviser.rows.find(params, "context_ns"),
                 adviser.rows.find(params, "module_ns")});
  }
  loading(adviser,
          "eager",
          "lazy",
          kUntilFirst,
          "time until the first kernel is done",
          {.of = "loading eagerly",
           .than = "loading lazily",
           .if_more = "Load lazily where start-up counts",
           .if_less = "Load eagerly",
           .if_same = "Loading eagerly costs nothing"});
  const std::string load_and_run = "time to load and run the first kernel";
  loading(
      adviser,
      "jit_uncached",
      "jit_cached",
      kOfCode,
      load_and_run,
      {.of = "with an empty cache",
       .than = "with a full one",
       .if_more = "Ship native code, or keep the driver's cache of compiled code (CUDA_CACHE_PATH)",
       .if_less = "The driver's cache does not help",
       .if_same = "An empty cache costs nothing",
       .less = Severity::note});
  loading(adviser,
          "jit_cached",
          "lazy",
          kOfCode,
          load_and_run,
          {.of = "from the driver's cache",
           .than = "with this build's code for the device",
           .if_more = "Ship native code",
           .if_less = "This build may lack native code for the device",
           .if_same = "Kernels from the driver's cache cost nothing",
           .less = Severity::note});
}

std::vector<std::string_view> metrics_of_first(const std::string& loading) {
  // The host has a thread to start in place of a context, and nothing to load.
  if (loading == "none")
    return {"context_ns", "first_call_ns", "first_roundtrip_ns", "second_roundtrip_ns"};
  return {"initialise_ns",
          "context_ns",
          "module_ns",
          "first_call_ns",
          "first_roundtrip_ns",
          "second_roundtrip_ns"};
}

/// The steps of a process that loads in this way, of which the host (`none`) has fewer.
std::vector<FigureLine> steps(const std::string& loading) {
  std::vector<FigureLine> lines;
  for (const auto& [label, metric] : {std::pair("initialise", "initialise_ns"),
                                      {"context", "context_ns"},
                                      {"module", "module_ns"},
                                      {"first call", "first_call_ns"},
                                      {"first round trip", "first_roundtrip_ns"},
                                      {"second one", "second_roundtrip_ns"}}) {
    const std::vector<std::string_view> taken = metrics_of_first(loading);
    if (std::ranges::find(taken, metric) != taken.end())
      lines.push_back({label, {{"loading", loading}}, metric});
  }
  return lines;
}

std::vector<FigureLine> by_loading(const std::string& metric) {
  std::vector<FigureLine> lines;
  for (const auto& [label, loading] : {std::pair("lazy", "lazy"),
                                       {"host", "none"},
                                       {"eager", "eager"},
                                       {"JIT, cached", "jit_cached"},
                                       {"JIT, uncached", "jit_uncached"}}) {
    const std::vector<std::string_view> taken = metrics_of_first(loading);
    if (std::ranges::find(taken, metric) != taken.end())
      lines.push_back({label, {{"loading", loading}}, metric});
  }
  return lines;
}

const Registration launch_first =
    benchmark("launch/first")
        .asks("What does a fresh process pay before its first kernel is done?")
        .process_axis("loading",
                      "how the process loads code: `lazy`, `eager` (CUDA_MODULE_LOADING); "
                      "`jit_uncached`, PTX that the driver compiles anew; `jit_cached`, PTX that "
                      "it finds compiled; `none` on the host",
                      first_ways,
                      "")
        .brings(host_time("initialise_ns",
                          "Loading the driver and initialising it (cuInit), in a fresh process."))
        .brings(
            host_time("context_ns",
                      "Making the context in a fresh process; for the host, starting its queue."))
        .brings(host_time("module_ns",
                          "Loading the module that holds the kernel, in a fresh process; for "
                          "jit_uncached compiling is in it. Missing for lazy and eager where the "
                          "driver compiled, since that depends on its cache."))
        .brings(host_time("first_call_ns", "Time inside the first launch call of a process."))
        .brings(host_time("second_roundtrip_ns",
                          "The second launch of a process, from the start of the call until the "
                          "wait for it returns."))
        .metrics([](const CaseName& name) { return metrics_of_first(name.at("loading")); })
        .in_fresh_processes([](Profile profile) {
          return profile == Profile::quick ? 3 : profile == Profile::nightly ? 10 : 20;
        })
        .takes([](const DeviceFacts&, const CaseName&, Sampling) { return 0.3; })
        .one_device_at_a_time()
        .advises(advise_on_first)
        .draws({{"Step by step, loading lazily", steps("lazy")},
                {"Step by step, on the host", steps("none")},
                {"Loading the module", by_loading("module_ns")},
                {"First round trip", by_loading("first_roundtrip_ns")}})
        .makes<FirstLaunch>();

}  // namespace
}  // namespace launchgap
