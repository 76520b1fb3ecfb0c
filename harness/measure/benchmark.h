// How a benchmark is written: one file that describes its axes and makes its cases.
//
//   class NullLaunch : public Case { … void sample(Block& block) override { … } };
//
//   const Registration null_launch = benchmark("launch/null")
//       .asks("What does a launch cost when the kernel does nothing?")
//       .axis("mode", "`idle`: the stream is empty; `burst`: launches back to back", {"idle",
//       "burst"}) .metrics([](const CaseName& name) { … }) .samples([](Profile profile, const
//       CaseName& name) { return Sampling{5, 1000}; }) .one_device_at_a_time()
//       .makes<NullLaunch>();
//
// See docs/add-a-benchmark.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/block.h"
#include "harness/core/case_name.h"
#include "harness/core/choice.h"
#include "harness/core/device_skew.h"
#include "harness/core/metric.h"
#include "harness/core/plan.h"
#include "harness/core/result_bits.h"
#include "harness/device/backend.h"
#include "harness/device/device.h"

namespace launchgap {

/// What a case is made from.
struct CaseContext {
  Device& device;
  CaseName name;
  std::uint64_t seed = 0;  // of this case in this run; the same inputs in every run of a session
};

/// A case, ready to be sampled: its constructor sets up, verifies the result, and warms up. It may
/// throw Unsupported (the device or a library cannot), WrongResult, or whatever its calls throw.
class Case {
 public:
  virtual ~Case() = default;
  /// Takes one sample and keeps it in `block`. Nothing but the measured statement runs between its
  /// clock reads.
  virtual void sample(Block& block) = 0;
  /// Samples taken and not kept at the start of each block, since writing the block before has
  /// emptied the caches.
  virtual int warm_up_samples() const { return 0; }
  /// How often a sample does its operation: the launches of a burst, the products behind one gate.
  virtual int operations_per_sample() const { return 1; }
  /// After the last sample: throws WrongResult if what was timed did not compute what it should.
  virtual void verify_timed_work() {}
  /// Where the case tried several ways: what came of each.
  virtual std::vector<Choice> choices() const { return {}; }
  /// Where the case compared the bits of results: what came of it.
  virtual std::optional<ResultBits> bits() const { return std::nullopt; }
  /// Where the case had several devices do a step at once: when each was ready, after the last
  /// sample.
  virtual std::optional<DeviceSkew> skew() const { return std::nullopt; }
  /// Processes that the case has on the device itself, beside this one.
  virtual int processes() const { return 0; }
  /// What did the work, for the reader of a ratio: library, call, algorithm.
  virtual std::string method() const = 0;
  /// The algorithm alone, where a library chose one and tells which: nights with different ones
  /// measured different things. Empty otherwise.
  virtual std::string algorithm() const { return {}; }
};

/// What the records of a sample are, in traced runs.
enum class TracedAs {
  launch,        // one launch and its kernel
  first_launch,  // the first is the sample's, with its kernel; others follow. Blocks have phases
  burst,         // as many launches of one kernel as the sample has operations
  work,          // kernels of a library
  gated_work,    // the same behind a gate, whose launch is a sample's first
  chain,         // operations of one kernel each, launched one by one or together
  allocation,    // one allocating call and one that gives back
  unseen,        // nothing that would give a value per sample; records are checked all the same
};

/// A case is measured in `blocks` blocks of `samples` samples each, per run.
struct Sampling {
  int blocks = 1;
  int samples = 1;
};

/// What the page draws of a benchmark, as data: a line of a figure over an axis, or a row of one
/// without.
struct FigureLine {
  /// Stand for a value that was measured: the smallest, the largest, and the largest that most of
  /// the figure's rows have.
  static constexpr std::string_view kLeast = "@least", kMost = "@most", kCommon = "@common";

  std::string label;
  /// Axes and the values that a case must have; it may have others.
  std::vector<std::pair<std::string, std::string>> params;
  std::string metric;
};

/// A metric over a numeric axis, a line per device and entry of `lines`; without an axis a row per
/// entry, in it a mark per device.
struct Figure {
  std::string caption;
  std::vector<FigureLine> lines;
  std::string axis = {};
  std::string axis_unit = {};  // empty: a plain number
  bool each_device = false;    // a figure per device, in which colours tell the lines apart
  /// Of a figure without `axis`: a row for each measured value of this one, with a mark per line.
  std::string each = {};
};

/// A number that a person looks for first: a column of the first table. The console has all, the
/// page the first.
struct Headline {
  enum class Of { median, one_in_1000, best_median };  // best: the highest of the cases

  std::string_view heading;  // "launch call"
  std::string_view params;   // what the case's parameters must have: "mode:idle"
  std::string_view metric;   // "api_ns"
  Of of = Of::median;
};
std::string_view name_of(Headline::Of of);  // "median", "one_in_1000", "best_median"

class Adviser;      // harness/summary/adviser.h
struct DeviceWork;  // harness/measure/device_work.h

/// What a machine's own numbers of a benchmark say that a program should do.
struct AdviceRule {
  void (*rule)(Adviser&) = nullptr;
  bool on_terminal = false;  // an answer that is read there though there is nothing to do
};

/// What the cases of a benchmark differ in.
struct Axis {
  using Values = std::function<std::vector<std::string>(Profile, const DeviceFacts&)>;

  std::string name;     // "mode"
  std::string meaning;  // of the axis, or of each value: "`idle`: …; `burst`: …"
  Values values;
  std::uint64_t largest = 0;  // of an axis of sizes, which a user may sweep; else 0
};

/// Values that depend on the profile alone.
Axis::Values by_profile(std::vector<std::string> quick,
                        std::vector<std::string> nightly,
                        std::vector<std::string> full);
Axis::Values by_profile(std::vector<std::string> quick, const std::vector<std::string>& otherwise);
/// Values that only GPUs have.
Axis::Values on_gpus(Axis::Values values);

/// A setting of the whole process that cases ask for; nothing: the usual one. Settings are in
/// harness/core/process_config.h.
struct ProcessSetting {
  std::string name;
  std::function<std::optional<std::string>(const CaseName&)> value;
};

struct Benchmark {
  std::string name;      // "launch/null"
  std::string question;  // what it answers, for `list` and the page
  std::vector<Axis> axes;
  std::function<std::vector<std::string_view>(const CaseName&)> metrics;
  std::function<Sampling(Profile, const CaseName&)> sampling;
  std::function<double(const DeviceFacts&, const CaseName&, Sampling)>
      seconds;         // estimate of a case
  bool alone = false;  // whether neighbours would disturb it
  std::vector<ProcessSetting> settings;
  bool fresh_process = false;             // a process does nothing else, and warms nothing up
  std::function<int(Profile)> processes;  // how many per session, where not as many as the others
  std::function<bool(Profile, const DeviceFacts&, const CaseName&)> wanted;  // which of the product
  bool stops_when_steady = false;  // harness/measure/warm_up.h
  std::function<bool(const CaseName&)> traced = [](const CaseName&) { return true; };
  std::function<TracedAs(const CaseName&)> traced_as = [](const CaseName&) {
    return TracedAs::unseen;
  };
  std::vector<Metric> own_metrics;
  std::vector<Headline> headlines;
  std::optional<AdviceRule> advice;
  std::vector<Figure> figures;         // that answer the question
  bool shows_observer_effect = false;  // runs once more at each lesser level of tracing
  bool recorded = false;               // `import` reads its cases, and nothing runs them
  std::function<std::unique_ptr<Case>(const CaseContext&)> make;

  std::string family() const { return name.substr(0, name.find('/')); }
  /// The family, with the settings of the process that the case asks for.
  ProcessConfig process_config_of(const CaseName& name) const;
  /// The product of all axes, or what is wanted of it; none of what is recorded.
  std::vector<CaseName> cases(Profile profile, const DeviceFacts& facts) const;
};

/// Builds a Benchmark in the words of its file.
class BenchmarkBuilder {
 public:
  explicit BenchmarkBuilder(std::string name);
  BenchmarkBuilder& asks(std::string question);
  /// The same values for every profile and device.
  BenchmarkBuilder& axis(std::string name, std::string meaning, std::vector<std::string> values);
  BenchmarkBuilder& axis(std::string name, std::string meaning, Axis::Values values);
  /// The same, of sizes: `--sweep` gives it any from 1 to `largest` in place of these.
  BenchmarkBuilder& size_axis(std::string name,
                              std::string meaning,
                              Axis::Values values,
                              std::uint64_t largest);
  /// A metric that no other benchmark has; those that several have are in harness/core/metric.cpp.
  BenchmarkBuilder& brings(Metric metric);
  BenchmarkBuilder& metrics(std::vector<std::string_view> keys);
  BenchmarkBuilder& metrics(std::function<std::vector<std::string_view>(const CaseName&)> keys);
  /// One of the numbers of the first table.
  BenchmarkBuilder& headline(Headline headline);
  /// What the page draws to answer the question.
  BenchmarkBuilder& draws(std::vector<Figure> figures);
  /// The rule that says what to do.
  BenchmarkBuilder& advises(void (*rule)(Adviser&));
  /// What the rule notes is an answer that the terminal has too.
  BenchmarkBuilder& answers_on_terminal();
  BenchmarkBuilder& samples(std::function<Sampling(Profile, const CaseName&)> sampling);
  BenchmarkBuilder& samples(Sampling always);
  BenchmarkBuilder& samples(Sampling quick, Sampling otherwise);
  /// So many seconds at first and for each sample.
  BenchmarkBuilder& takes(double first_s, double sample_s);
  BenchmarkBuilder& takes(
      std::function<double(const DeviceFacts&, const CaseName&, Sampling)> seconds);
  BenchmarkBuilder& one_device_at_a_time();
  /// An axis that is a setting of the whole process: its cases run in process configurations of
  /// their own, but those with the `usual` value.
  BenchmarkBuilder& process_axis(std::string name,
                                 std::string meaning,
                                 Axis::Values values,
                                 std::string usual);
  /// The cases for which it is so run in processes that see a second GPU, where the session has
  /// one; else not at all.
  BenchmarkBuilder& needs_two_gpus(std::function<bool(const CaseName&)> needs);
  /// Its cases run once per kind of device, on the first of the session, in processes that see all
  /// of them.
  BenchmarkBuilder& needs_all_gpus();
  /// Each case has processes to itself, which do nothing else, and each process takes one sample
  /// unless `samples` follows. Needs a process_axis.
  BenchmarkBuilder& in_fresh_processes(std::function<int(Profile)> processes);
  /// Leaves cases out of the product of the axes.
  BenchmarkBuilder& only(std::function<bool(Profile, const DeviceFacts&, const CaseName&)> wanted);
  /// A case ends before all of its blocks when its medians are known well enough (warm_up.h).
  BenchmarkBuilder& stops_when_steady();
  /// Which cases are traced too; without it all do.
  BenchmarkBuilder& traced_where(std::function<bool(const CaseName&)> traced);
  /// None: their records would say nothing more.
  BenchmarkBuilder& untraced();
  BenchmarkBuilder& traced_as(TracedAs as);
  BenchmarkBuilder& traced_as(std::function<TracedAs(const CaseName&)> as);
  /// Its metrics of the host's clock say what tracing itself costs.
  BenchmarkBuilder& shows_observer_effect();

  template <class SomeCase>
  Benchmark makes() {
    benchmark_.make = [](const CaseContext& context) -> std::unique_ptr<Case> {
      return std::make_unique<SomeCase>(context);
    };
    return benchmark_;
  }
  /// Its cases are not run: they are what somebody else recorded.
  Benchmark is_recorded();
  /// Of work on the device (device_work.h). Its metrics are device_ns, and the rate that it brings,
  /// if any; a few blocks of ten samples, unless `samples` precedes.
  Benchmark times(std::function<DeviceWork(const CaseContext&)> work);
  /// For a benchmark of several classes.
  Benchmark makes(std::function<std::unique_ptr<Case>(const CaseContext&)> make);

 private:
  Benchmark benchmark_;
};

inline BenchmarkBuilder benchmark(std::string name) {
  return BenchmarkBuilder(std::move(name));
}

/// Puts a benchmark into all_benchmarks() before main() begins.
class Registration {
 public:
  Registration(Benchmark benchmark);  // NOLINT(google-explicit-constructor): reads as a sentence
};

/// Every benchmark of this binary, by name.
const std::vector<Benchmark>& all_benchmarks();

/// The benchmark that a case belongs to; throws Error if there is none.
const Benchmark& benchmark_of(const CaseName& name);

// --- What is read before what: one list each ---

// What is in no list stands behind those that are, by the name of its benchmark, so a new benchmark
// needs no entry.

/// Of the columns of the first table, from the left.
std::size_t place_of(const Headline& headline);
/// Of the questions that have figures, on the page from above.
std::size_t place_of_figures(const Benchmark& benchmark);
/// Of the rules of advice: of equal differences, what is usually worth most comes first.
std::size_t place_of_advice(const Benchmark& benchmark);

}  // namespace launchgap
