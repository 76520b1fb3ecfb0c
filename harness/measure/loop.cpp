#include "harness/measure/loop.h"

#include <algorithm>
#include <exception>
#include <memory>

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

/// One repetition: as many samples as it has iterations.
void take_samples(benchmark::State& state, Case& measured, Block& block, std::uint64_t index) {
  static const nvtx::Name measure("measure");
  block.restart();
  const int warm_up = std::min(measured.warm_up_samples(), static_cast<int>(block.capacity()));
  for (int i = 0; i < warm_up; ++i) measured.sample(block);
  block.restart();
  {
    const nvtx::Range range(measure, index);
    for (auto _ : state) measured.sample(block);
  }
  block.close();
  state.SetIterationTime(static_cast<double>(block.end_ns() - block.begin_ns()) * 1e-9);
}

}  // namespace

void measure_blocks(Case& measured,
                    const CaseName& name,
                    const std::vector<std::string_view>& metrics,
                    Sampling sampling,
                    const std::function<void(int block, const Block&)>& done) {
  Block block(metrics, static_cast<std::size_t>(sampling.samples));
  std::exception_ptr failure;
  int index = 0;
  benchmark::RegisterBenchmark(name.text().c_str(),
                               [&](benchmark::State& state) {
                                 if (failure) {
                                   state.SkipWithError("an earlier block failed");
                                   return;
                                 }
                                 try {
                                   take_samples(
                                       state, measured, block, static_cast<std::uint64_t>(index));
                                   done(index++, block);
                                 } catch (...) {
                                   failure = std::current_exception();
                                   state.SkipWithError("failed");
                                 }
                               })
      ->Iterations(sampling.samples)
      ->Repetitions(sampling.blocks)
      ->UseManualTime();
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
        [&device, &definition, name, sampling, seed, prepared](benchmark::State& state) {
          try {
            if (!*prepared) *prepared = definition.make({device, name, seed});
            Block block(definition.metrics(name), static_cast<std::size_t>(state.max_iterations));
            take_samples(state, **prepared, block, 0);
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
