#include "harness/measure/loop.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include <benchmark/benchmark.h>

#include "harness/measure/nvtx.h"

namespace launchgap {
namespace {

/// Google Benchmark's reports are not used: the blocks themselves are the result.
class SilentReporter : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

/// Google Benchmark compares the iterations of repetitions, and aborts where they differ: one that
/// has nothing to do still iterates.
void iterate_idly(benchmark::State& state) {
  for (auto _ : state) {
  }
  state.SetIterationTime(0);
}

/// One repetition: as many samples as it has iterations, the first of which has the key `key`.
/// Rethrows, when it has iterated as often as it must, the first exception of a sample, after which
/// no more are taken.
void take_samples(benchmark::State& state,
                  Case& measured,
                  Block& block,
                  std::uint64_t index,
                  std::uint64_t key) {
  static const nvtx::Name measure("measure"), one_sample("sample");
  std::exception_ptr failure;
  bool sound = true;
  const auto sample = [&] {
    try {
      measured.sample(block);
    } catch (...) {
      failure = std::current_exception();
      sound = false;
    }
  };
  block.restart();
  const int warm_up = std::min(measured.warm_up_samples(), static_cast<int>(block.capacity()));
  for (int i = 0; i < warm_up && sound; ++i) sample();
  block.restart();
  {
    const nvtx::Range range(measure, index);
    for (auto _ : state) {
      if (!sound) continue;
      const nvtx::Range own_range(one_sample, key++);
      sample();
    }
  }
  block.close();
  state.SetIterationTime(static_cast<double>(block.end_ns() - block.begin_ns()) * 1e-9);
  if (failure) std::rethrow_exception(failure);
}

/// Around the blocks of a case, so that a tool that captures one range has all of them.
const nvtx::Name& all_blocks() {
  static const nvtx::Name name("blocks");
  return name;
}

/// Names the process to tools, within the range that they capture.
void say_once(const std::string& run) {
  static bool said = false;
  if (!run.empty() && !std::exchange(said, true)) nvtx::mark("run=" + run);
}

}  // namespace

void measure_blocks(Case& measured,
                    const CaseName& name,
                    const std::vector<std::string_view>& metrics,
                    Sampling sampling,
                    const ToldToTools& told,
                    const std::function<bool(int block, const Block&)>& done) {
  Block block(metrics, static_cast<std::size_t>(sampling.samples));
  std::exception_ptr failure;
  int index = 0;
  std::uint64_t key = told.first_key;
  bool enough = false;
  benchmark::RegisterBenchmark(
      name.text().c_str(),
      [&](benchmark::State& state) {
        if (failure || enough) return iterate_idly(state);
        try {
          take_samples(state, measured, block, static_cast<std::uint64_t>(index), key);
          key += block.size();
          enough = !done(index++, block);
        } catch (...) {
          failure = std::current_exception();
        }
      })
      ->Iterations(sampling.samples)
      ->Repetitions(sampling.blocks)
      ->UseManualTime();
  const nvtx::Range range(all_blocks());
  say_once(told.run);
  SilentReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter, "all");
  benchmark::ClearRegisteredBenchmarks();
  if (failure) std::rethrow_exception(failure);
}

void register_with_google_benchmark(Device& device,
                                    const std::vector<CaseName>& cases,
                                    Profile profile,
                                    std::uint64_t seed) {
  for (const CaseName& name : cases) {
    const Benchmark& definition = benchmark_of(name);
    const Sampling sampling = definition.sampling(profile, name);
    auto prepared = std::make_shared<std::unique_ptr<Case>>();
    benchmark::RegisterBenchmark(
        name.text().c_str(),
        [&device, &definition, name, seed, prepared](benchmark::State& state) {
          try {
            if (!*prepared) *prepared = definition.make({device, name, seed});
            Block block(definition.metrics(name), static_cast<std::size_t>(state.max_iterations));
            take_samples(state, **prepared, block, 0, 0);
            for (std::size_t i = 0; i < block.metrics().size(); ++i) {
              double sum = 0;
              for (const double value : block.values(i)) sum += value;
              state.counters[std::string(block.metrics()[i])] =
                  sum / static_cast<double>(block.size());
            }
          } catch (const std::exception& error) {
            state.SkipWithError(error.what());
          }
        })
        ->Iterations(sampling.samples)
        ->UseManualTime();
  }
}

}  // namespace launchgap
