// What the harness itself costs. The figures that the docs promise:
//   keeping one sample of three metrics  <= 1.5 x an iteration of Google Benchmark's own
//   manual-time loop writing records                      >= 5 million samples/s on one core
//   reading and summarising              10 million samples in <= 10 s and 1 GiB on one core
// tests/end_to_end/test_microbench.py runs this and holds them to it.
#include <filesystem>
#include <sys/resource.h>

#include <benchmark/benchmark.h>

#include "harness/core/clock.h"
#include "harness/core/output_file.h"
#include "harness/measure/nvtx.h"
#include "harness/measure/thread_watch.h"
#include "harness/record/writer.h"
#include "harness/summary/slow_causes.h"
#include "harness/summary/summary.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;

constexpr int kSamples = 1000;

struct SessionFolder {
  SessionFolder() { fs::create_directories(path / "records"); }
  const TemporaryFolder folder;
  const fs::path path = folder.path();
};

/// Three metrics of one sample, as a launch has them.
Block launch_block(int samples) {
  Block block({"api_ns", "roundtrip_ns", "per_launch_ns"}, static_cast<std::size_t>(samples));
  block.restart();
  for (int i = 0; i < samples; ++i)
    block.keep(
        block.begin_ns() + std::int64_t{6700} * i, 2300 + i % 97, 6700 + i % 89, 2000.125 + i % 83);
  block.close();
  return block;
}

/// Google Benchmark's manual-time loop, which keeps no sample: around two clock reads, and around
/// nothing.
void google_around_clock_reads(benchmark::State& state) {
  for (auto _ : state) {
    const std::int64_t begin = now_ns();
    const std::int64_t end = now_ns();
    state.SetIterationTime(static_cast<double>(end - begin) * 1e-9);
  }
}
BENCHMARK(google_around_clock_reads)->Name("loop/google_manual_time/clock_reads");

void google_around_nothing(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(1e-9);
}
BENCHMARK(google_around_nothing)->Name("loop/google_manual_time/bare");

/// As many samples as a block has, so that the block is in the cache or not as in a run.
constexpr benchmark::IterationCount kBlock = 2000;

/// A loop that keeps a sample of three metrics in each iteration.
template <class Sample>
void keep(benchmark::State& state, Sample&& sample) {
  Block block({"api_ns", "roundtrip_ns", "per_launch_ns"}, kBlock);
  benchmark::IterationCount room = kBlock;
  for (auto _ : state) {
    if (--room == 0) {
      block.restart();
      room = kBlock;
    }
    sample(block);
  }
  benchmark::DoNotOptimize(block.values(2).data());
  benchmark::ClobberMemory();
}

void keep_with_clock_reads(benchmark::State& state) {
  keep(state, [](Block& block) {
    const std::int64_t begin = now_ns();
    const std::int64_t end = now_ns();
    block.keep(begin, end - begin, end - begin, end);
  });
}
BENCHMARK(keep_with_clock_reads)->Name("loop/keep_three_metrics/clock_reads");

void keep_bare(benchmark::State& state) {
  std::int64_t now = 0;
  keep(state, [&now](Block& block) {
    ++now;
    block.keep(now, now, now, now);
    benchmark::ClobberMemory();
  });
}
BENCHMARK(keep_bare)->Name("loop/keep_three_metrics/bare");

/// The same in a sample's NVTX range, to which nobody listens.
void keep_in_range(benchmark::State& state) {
  static const nvtx::Name name("sample");
  std::int64_t now = 0;
  keep(state, [&now](Block& block) {
    const nvtx::Range range(name, static_cast<std::uint64_t>(now));
    ++now;
    block.keep(now, now, now, now);
    benchmark::ClobberMemory();
  });
}
BENCHMARK(keep_in_range)->Name("loop/keep_three_metrics/in_range");

/// What a look at the thread takes after each sample.
void watch_thread(benchmark::State& state) {
  ThreadWatch watch({"api_ns", "roundtrip_ns", "per_launch_ns"});
  Block usual({"api_ns", "roundtrip_ns", "per_launch_ns"}, 1);
  watch.begin_block(usual);
  usual.keep(usual.begin_ns(), 2300, 6700, 2000);
  watch.end_block(usual);
  watch.begin_block(usual);
  std::int64_t now = usual.begin_ns();
  keep(state, [&](Block& block) {
    block.keep(now, 2300, 6700, 2000);
    now += 6700;
    watch.look(block);
  });
}
BENCHMARK(watch_thread)->Name("watch/sample");

void write_records(benchmark::State& state) {
  const SessionFolder folder;
  const Block block = launch_block(kSamples);
  RecordWriter writer = RecordWriter::create(folder.path / "records" / "a.jsonl");
  int index = 0;
  for (auto _ : state) {
    writer.write_samples("launch/null/api:driver/mode:idle",
                         index,
                         static_cast<std::uint64_t>(index) * kSamples,
                         block);
    ++index;
  }
  state.counters["samples"] = benchmark::Counter(static_cast<double>(state.iterations()) * kSamples,
                                                 benchmark::Counter::kIsRate);
}
BENCHMARK(write_records)->Name("records/write")->Iterations(1000)->Repetitions(5);

/// A session of `state.range(0)` samples in ten runs.
void write_session(const fs::path& folder, long samples) {
  Json meta = new_record("session");
  meta["devices"] = Json::array();
  write_file(folder / "session.json", meta.dump());
  const Block block = launch_block(kSamples);
  for (int run = 0; run < 10; ++run) {
    RecordWriter writer =
        RecordWriter::create(folder / "records" / ("r" + std::to_string(run) + ".jsonl"));
    Json record = new_record("run");
    record["replicate"] = run;
    record["device"] = {{"uuid", "GPU-1"}};
    writer.write(record);
    for (long i = 0; i < samples / 10 / kSamples; ++i) {
      writer.write_samples("launch/null/api:driver/mode:idle",
                           static_cast<int>(i),
                           static_cast<std::uint64_t>(i) * kSamples,
                           block);
    }
  }
}

void read_and_summarise(benchmark::State& state) {
  const SessionFolder folder;
  write_session(folder.path, state.range(0));
  for (auto _ : state) {
    const SessionData session = read_session(folder.path);
    const auto rows = summarise(session);
    benchmark::DoNotOptimize(rows.data());
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  state.counters["samples"] = static_cast<double>(state.range(0));
}
BENCHMARK(read_and_summarise)
    ->Name("records/read_and_summarise")
    ->Arg(10'000'000)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

/// Beside reading: why which of as many samples are slow, by each of three metrics.
void find_slow_causes(benchmark::State& state) {
  const SessionFolder folder;
  write_session(folder.path, state.range(0));
  const SessionData session = read_session(folder.path);
  for (auto _ : state) {
    const auto parts = slow_parts(session);
    benchmark::DoNotOptimize(parts.data());
  }
  state.counters["samples"] = static_cast<double>(state.range(0));
}
BENCHMARK(find_slow_causes)
    ->Name("records/slow_causes")
    ->Arg(10'000'000)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

}  // namespace
}  // namespace launchgap

BENCHMARK_MAIN();
