#include "harness/measure/benchmark.h"

#include <algorithm>
#include <array>
#include <span>

#include "harness/core/errors.h"
#include "harness/measure/sweep.h"

namespace launchgap {
namespace {

std::vector<Benchmark>& registry() {
  static std::vector<Benchmark> benchmarks;
  return benchmarks;
}

constexpr std::string_view kHeadlines[] = {
    "launch call",
    "p99.9",
    "round trip",
    "per launch, burst",
    "matmul fp32, best",
    "matmul bf16, best",
    "convolution fp32, best",
    "allocate 1 MiB",
};

constexpr std::string_view kFigures[] = {
    "launch/api",         "launch/args",          "launch/grid",
    "launch/streams",     "launch/threads",       "launch/graph",
    "launch/cooperative", "launch/dependent",     "launch/priority",
    "launch/wait",        "launch/first",         "launch/after_idle",
    "launch/queue",       "launch/library",       "launch/chain",
    "launch/cscs",        "launch/small_kernels", "matmul/shapes",
    "convolution/shapes", "matmul/choice",        "convolution/selection",
    "matmul/code",        "convolution/code",
};

constexpr std::string_view kAdvice[] = {
    "launch/chain",          "launch/graph",      "launch/small_kernels", "launch/wait",
    "launch/first",          "launch/after_idle", "launch/queue",         "launch/library",
    "launch/cscs",           "launch/api",        "launch/args",          "launch/grid",
    "launch/streams",        "launch/threads",    "launch/cooperative",   "launch/dependent",
    "launch/priority",       "matmul/data",       "matmul/choice",        "matmul/sustained",
    "convolution/selection", "matmul/code",       "convolution/code",
};

std::size_t place_in(std::span<const std::string_view> list, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(list, name) - list.begin());
}

}  // namespace

std::string_view name_of(Headline::Of of) {
  constexpr std::string_view kNames[] = {"median", "one_in_1000", "best_median"};
  return kNames[static_cast<std::size_t>(of)];
}

/// What a device measures on an axis: its own values, or the user's sizes.
static std::vector<std::string> values_of(const Axis& axis,
                                          Profile profile,
                                          const DeviceFacts& facts) {
  const Sweep* const sweep = axis.largest > 0 ? sweep_of(axis.name) : nullptr;
  if (!sweep) return axis.values(profile, facts);
  std::vector<std::string> values;
  for (const std::uint64_t size : sweep->sizes) {
    if (size <= axis.largest) values.push_back(std::to_string(size));
  }
  return values;
}

std::vector<CaseName> Benchmark::cases(Profile profile, const DeviceFacts& facts) const {
  std::vector<CaseName> all = {{name, {}}};
  for (const Axis& axis : axes) {
    const std::vector<std::string> values = values_of(axis, profile, facts);
    std::vector<CaseName> extended;
    for (const CaseName& prefix : all) {
      for (const std::string& value : values) {
        extended.push_back(prefix);
        extended.back().params.emplace_back(axis.name, value);
      }
    }
    all = std::move(extended);
  }
  if (wanted)
    std::erase_if(all, [&](const CaseName& name) { return !wanted(profile, facts, name); });
  return all;
}

ProcessConfig Benchmark::process_config_of(const CaseName& name) const {
  ProcessConfig process_config = family();
  for (const ProcessSetting& setting : settings) {
    if (const auto value = setting.value(name))
      process_config = process_config.with(setting.name, *value);
  }
  return process_config;
}

Axis::Values by_profile(std::vector<std::string> quick,
                        std::vector<std::string> nightly,
                        std::vector<std::string> full) {
  return [values = std::array{std::move(quick), std::move(nightly), std::move(full)}](
             Profile profile, const DeviceFacts&) {
    return values[static_cast<std::size_t>(profile)];
  };
}

Axis::Values by_profile(std::vector<std::string> quick, const std::vector<std::string>& otherwise) {
  return by_profile(std::move(quick), otherwise, otherwise);
}

Axis::Values on_gpus(Axis::Values values) {
  return [values = std::move(values)](Profile profile, const DeviceFacts& facts) {
    return is_gpu(facts) ? values(profile, facts) : std::vector<std::string>();
  };
}

BenchmarkBuilder::BenchmarkBuilder(std::string name) {
  benchmark_.name = std::move(name);
  benchmark_.seconds = [](const DeviceFacts&, const CaseName&, Sampling) { return 0.2; };
}

BenchmarkBuilder& BenchmarkBuilder::asks(std::string question) {
  benchmark_.question = std::move(question);
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::axis(std::string name,
                                         std::string meaning,
                                         std::vector<std::string> values) {
  return axis(std::move(name),
              std::move(meaning),
              [values = std::move(values)](Profile, const DeviceFacts&) { return values; });
}

BenchmarkBuilder& BenchmarkBuilder::axis(std::string name,
                                         std::string meaning,
                                         Axis::Values values) {
  benchmark_.axes.push_back({std::move(name), std::move(meaning), std::move(values)});
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::size_axis(std::string name,
                                              std::string meaning,
                                              Axis::Values values,
                                              std::uint64_t largest) {
  axis(std::move(name), std::move(meaning), std::move(values));
  benchmark_.axes.back().largest = largest;
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::brings(Metric metric) {
  benchmark_.own_metrics.push_back(std::move(metric));
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::metrics(std::vector<std::string_view> keys) {
  return metrics([keys = std::move(keys)](const CaseName&) { return keys; });
}

BenchmarkBuilder& BenchmarkBuilder::metrics(
    std::function<std::vector<std::string_view>(const CaseName&)> keys) {
  benchmark_.metrics = std::move(keys);
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::headline(Headline headline) {
  benchmark_.headlines.push_back(headline);
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::draws(std::vector<Figure> figures) {
  benchmark_.figures = std::move(figures);
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::advises(void (*rule)(Adviser&)) {
  benchmark_.advice = {rule};
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::answers_on_terminal() {
  benchmark_.advice->on_terminal = true;
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::samples(
    std::function<Sampling(Profile, const CaseName&)> sampling) {
  benchmark_.sampling = std::move(sampling);
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::samples(Sampling always) {
  return samples(always, always);
}

BenchmarkBuilder& BenchmarkBuilder::samples(Sampling quick, Sampling otherwise) {
  return samples([=](Profile profile, const CaseName&) {
    return profile == Profile::quick ? quick : otherwise;
  });
}

BenchmarkBuilder& BenchmarkBuilder::takes(double first_s, double sample_s) {
  return takes([=](const DeviceFacts&, const CaseName&, Sampling sampling) {
    return first_s + sample_s * sampling.blocks * sampling.samples;
  });
}

BenchmarkBuilder& BenchmarkBuilder::takes(
    std::function<double(const DeviceFacts&, const CaseName&, Sampling)> seconds) {
  benchmark_.seconds = std::move(seconds);
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::traced_as(TracedAs as) {
  return traced_as([as](const CaseName&) { return as; });
}

BenchmarkBuilder& BenchmarkBuilder::traced_as(std::function<TracedAs(const CaseName&)> as) {
  benchmark_.traced_as = std::move(as);
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::shows_observer_effect() {
  benchmark_.shows_observer_effect = true;
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::process_axis(std::string name,
                                                 std::string meaning,
                                                 Axis::Values values,
                                                 std::string usual) {
  benchmark_.settings.push_back(
      {name, [name, usual = std::move(usual)](const CaseName& of) -> std::optional<std::string> {
         return of.at(name) == usual ? std::nullopt : std::optional(of.at(name));
       }});
  return axis(std::move(name), std::move(meaning), std::move(values));
}

BenchmarkBuilder& BenchmarkBuilder::needs_two_gpus(std::function<bool(const CaseName&)> needs) {
  benchmark_.settings.push_back(
      {"gpus", [needs = std::move(needs)](const CaseName& name) -> std::optional<std::string> {
         return needs(name) ? std::optional<std::string>("2") : std::nullopt;
       }});
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::needs_all_gpus() {
  benchmark_.settings.push_back(
      {"gpus", [](const CaseName&) -> std::optional<std::string> { return "all"; }});
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::in_fresh_processes(std::function<int(Profile)> processes) {
  benchmark_.fresh_process = true;
  benchmark_.processes = std::move(processes);
  untraced();
  return samples([](Profile, const CaseName&) { return Sampling{1, 1}; });
}

BenchmarkBuilder& BenchmarkBuilder::only(
    std::function<bool(Profile, const DeviceFacts&, const CaseName&)> wanted) {
  benchmark_.wanted = std::move(wanted);
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::stops_when_steady() {
  benchmark_.stops_when_steady = true;
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::traced_where(std::function<bool(const CaseName&)> traced) {
  benchmark_.traced = std::move(traced);
  return *this;
}

BenchmarkBuilder& BenchmarkBuilder::untraced() {
  return traced_where([](const CaseName&) { return false; });
}

BenchmarkBuilder& BenchmarkBuilder::one_device_at_a_time() {
  benchmark_.alone = true;
  return *this;
}

Benchmark BenchmarkBuilder::makes(std::function<std::unique_ptr<Case>(const CaseContext&)> make) {
  benchmark_.make = std::move(make);
  return benchmark_;
}

Benchmark BenchmarkBuilder::is_recorded() {
  benchmark_.recorded = true;
  return only([](Profile, const DeviceFacts&, const CaseName&) { return false; }).benchmark_;
}

Registration::Registration(Benchmark benchmark) {
  auto& all = registry();
  const auto place = std::ranges::lower_bound(all, benchmark.name, {}, &Benchmark::name);
  if (place != all.end() && place->name == benchmark.name) {
    throw std::logic_error("two benchmarks are named " + benchmark.name);
  }
  for (const Metric& metric : benchmark.own_metrics) add_metric(metric);
  all.insert(place, std::move(benchmark));
}

const std::vector<Benchmark>& all_benchmarks() {
  return registry();
}

const Benchmark& benchmark_of(const CaseName& name) {
  for (const Benchmark& benchmark : registry()) {
    if (benchmark.name == name.benchmark) return benchmark;
  }
  throw Error("there is no benchmark '{}' in this binary", name.benchmark);
}

std::size_t place_of(const Headline& headline) {
  return place_in(kHeadlines, headline.heading);
}

std::size_t place_of_figures(const Benchmark& benchmark) {
  return place_in(kFigures, benchmark.name);
}

std::size_t place_of_advice(const Benchmark& benchmark) {
  return place_in(kAdvice, benchmark.name);
}

}  // namespace launchgap
