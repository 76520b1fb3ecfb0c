#include "harness/measure/loop.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <benchmark/benchmark.h>

#include "harness/measure/nvtx.h"

namespace launchgap {
namespace {

/// A block: `repeat` calls what it is given once per sample, and throws what that throws. The first
/// sample has the key `key`.
template <class Repeat>
void take_samples(Case& measured,
                  Block& block,
                  std::uint64_t index,
                  std::uint64_t key,
                  Repeat&& repeat) {
  static const nvtx::Name measure("measure"), one_sample("sample");
  block.restart();
  const int warm_up = std::min(measured.warm_up_samples(), static_cast<int>(block.capacity()));
  for (int i = 0; i < warm_up; ++i) measured.sample(block);
  block.restart();
  {
    const nvtx::Range range(measure, index);
    repeat([&] {
      const nvtx::Range own_range(one_sample, key++);
      measured.sample(block);
    });
  }
  block.close();
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
                    const std::vector<std::string_view>& metrics,
                    Sampling sampling,
                    const ToldToTools& told,
                    const std::function<bool(const MeasuredBlock&)>& done) {
  Block block(metrics, static_cast<std::size_t>(sampling.samples));
  ThreadWatch watch(metrics);
  const nvtx::Range range(all_blocks());
  say_once(told.run);
  std::uint64_t key = told.first_key;
  for (int index = 0; index < sampling.blocks; ++index) {
    take_samples(measured, block, static_cast<std::uint64_t>(index), key, [&](const auto& sample) {
      watch.begin_block(block);
      for (int i = 0; i < sampling.samples; ++i) {
        sample();
        watch.look(block);
      }
    });
    watch.end_block(block);
    key += block.size();
    if (!done({index, block, watch})) return;
  }
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
            take_samples(**prepared, block, 0, 0, [&](const auto& sample) {
              for (auto _ : state) sample();
            });
            state.SetIterationTime(static_cast<double>(block.end_ns() - block.begin_ns()) * 1e-9);
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
