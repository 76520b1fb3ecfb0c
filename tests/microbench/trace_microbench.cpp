// What decoding and joining CUPTI's records costs.
#include <cstring>
#include <sys/resource.h>
#include <vector>

#include <benchmark/benchmark.h>

#include "harness/core/errors.h"
#include "harness/trace/cupti/cupti.h"
#include "harness/trace/cupti/decode.h"
#include "harness/trace/join.h"

namespace launchgap::cupti {
namespace {

constexpr std::size_t kKernelBytes = 216;  // CUpti_ActivityKernel10
constexpr std::size_t kBufferBytes = 4 << 20;

abi::Result step_by_strides(std::uint8_t* buffer, std::size_t valid, abi::Activity** record) {
  std::uint8_t* at = buffer;
  if (*record) {
    at = reinterpret_cast<std::uint8_t*>(*record) +
         ((*record)->kind == abi::kDriverApi ? sizeof(abi::ApiActivity) : kKernelBytes);
  }
  if (at >= buffer + valid) return abi::kMaxLimitReached;
  *record = reinterpret_cast<abi::Activity*>(at);
  return abi::kSuccess;
}

/// The real library steps over records where it is installed.
RecordReader reader() {
  try {
    const Cupti& cupti = Cupti::get();
    if (!cupti.facts.simulated && cupti.version >= 130000 && cupti.version < 130100)
      return {cupti.cuptiActivityGetNextRecord, cupti.version};
  } catch (const Error&) {
  }
  return {step_by_strides, 130001};
}

/// A full buffer of launches and their kernels, as a burst fills it. Returns its records.
std::size_t fill(std::vector<std::uint8_t>& buffer, std::uint32_t first_correlation) {
  buffer.clear();
  buffer.reserve(kBufferBytes);
  std::size_t records = 0;
  const auto append = [&](const auto& record, std::size_t bytes) {
    const std::size_t at = buffer.size();
    buffer.resize(at + bytes, 0);
    std::memcpy(buffer.data() + at, &record, sizeof record);
    ++records;
  };
  std::uint64_t now = 1'700'000'000'000'000'000 + std::uint64_t{first_correlation} * 3000;
  for (std::uint32_t number = first_correlation;
       buffer.size() + sizeof(abi::ApiActivity) + kKernelBytes <= kBufferBytes;
       ++number, now += 3000) {
    append(
        abi::ApiActivity{abi::kDriverApi, abi::kLaunchKernelEx, now, now + 2000, 1, 1, number, 0},
        sizeof(abi::ApiActivity));
    abi::KernelActivity kernel{};
    kernel.kind = abi::kConcurrentKernel;
    kernel.start = now + 5000;
    kernel.end = now + 6000;
    kernel.correlation = number;
    kernel.name = "launchgap_null";
    append(kernel, kKernelBytes);
  }
  return records;
}

/// `state.range(0)` records, in deliveries of four buffers at a time.
void decode_and_join(benchmark::State& state) {
  const RecordReader read = reader();
  std::vector<std::vector<std::uint8_t>> buffers(4);
  std::size_t per_delivery = 0;
  std::uint32_t correlation = 1;
  for (auto& buffer : buffers) {
    const std::size_t records = fill(buffer, correlation);
    correlation += static_cast<std::uint32_t>(records / 2);
    per_delivery += records;
  }
  activity::Trace trace;
  std::uint64_t done = 0, joined = 0;
  for (auto _ : state) {
    done = joined = 0;
    while (done < static_cast<std::uint64_t>(state.range(0))) {
      trace.clear();
      for (auto& buffer : buffers) decode(read, buffer.data(), buffer.size(), trace);
      joined += join(trace).counts.joined;
      done += per_delivery;
    }
  }
  if (joined * 2 != done) state.SkipWithError("records were not joined");
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["records"] =
      benchmark::Counter(static_cast<double>(done) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
  state.counters["peak_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  state.SetLabel(read.next == step_by_strides ? "own strides" : "real libcupti");
}
// The first runs alone: the figure of peak memory is the process's.
BENCHMARK(decode_and_join)
    ->Name("trace/decode_and_join")
    ->Arg(1'000'000)
    ->Arg(10'000'000)
    ->Arg(100'000'000)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

}  // namespace
}  // namespace launchgap::cupti
