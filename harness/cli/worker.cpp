// launchgap worker: internal, and a plain Google Benchmark program.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <unistd.h>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/core/cpus.h"
#include "harness/core/say.h"
#include "harness/device/backend.h"
#include "harness/doctor/doctor.h"
#include "harness/measure/loop.h"
#include "harness/run/perform_job.h"
#include "harness/run/process.h"
#include "harness/run/run_tracing.h"

namespace launchgap::cli {
namespace {

constexpr const char* kHelp =
    "launchgap worker: the cases of one device as a plain Google Benchmark program\n"
    "\n"
    "  --device host|<uuid>   the device; default: host\n"
    "  --profile quick|nightly|full\n"
    "  --benchmark_…          Google Benchmark's own options, such as --benchmark_filter=launch,\n"
    "                         --benchmark_list_tests, --benchmark_repetitions=5, "
    "--benchmark_out=FILE\n"
    "\n"
    "`launchgap run` starts workers by `worker --job`, which is internal.\n"
    "Example: launchgap worker --device host --benchmark_filter=launch/null\n";

/// The value of `--name value` or `--name=value`, taken out of the arguments.
std::string take_option(int& argc, char** argv, const std::string& name, std::string value) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    int used = 0;
    if (argument.starts_with(name + "=")) {
      value = argument.substr(name.size() + 1);
      used = 1;
    } else if (argument == name) {
      if (i + 1 == argc) throw UsageError(fmt::format("worker: {} needs a value", name));
      value = argv[i + 1];
      used = 2;
    }
    if (used == 0) continue;
    std::move(argv + i + used, argv + argc, argv + i);
    argc -= used;
    --i;
  }
  return value;
}

/// Google Benchmark 1.8 turned the field into one of another name and type.
template <class Run>
bool failed(const Run& run) {
  if constexpr (requires { run.error_occurred; }) {
    return run.error_occurred;
  } else {
    return static_cast<bool>(run.skipped);
  }
}

/// Counts cases that reported an error, since Google Benchmark's own exit code does not.
class CountingReporter : public benchmark::ConsoleReporter {
 public:
  CountingReporter()
      : ConsoleReporter(isatty(STDOUT_FILENO) == 1 && !std::getenv("NO_COLOR") ? OO_Color
                                                                               : OO_None) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) errors += failed(run);
    ConsoleReporter::ReportRuns(runs);
  }
  int errors = 0;
};

}  // namespace

ExitCode worker_main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--job") == 0) {
    const Json job = receive_job();
    const std::optional<int> probed = doctor::answer_probe_job(job);
    return static_cast<ExitCode>(probed ? *probed : run_job(job));
  }
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0 || std::strcmp(argv[i], "-h") == 0) {
      answer_text(kHelp);
      return ExitCode::done;
    }
  }
  const std::string uuid = take_option(argc, argv, "--device", "host");
  const Profile profile = parse_profile(take_option(argc, argv, "--profile", "quick"));
  benchmark::Initialize(&argc, argv);
  if (argc > 1)
    throw UsageError(
        fmt::format("worker: '{}' is not known. `launchgap worker --help` shows what is", argv[1]));

  const Backend& backend = backend_of_uuid(uuid);
  const std::unique_ptr<Device> device = backend.open(uuid, {});
  keep_kernels_from_waiting(*device);
  // As in a run: the launching thread stays on one CPU.
  const CpuList cpus = allowed_cpus();
  bind_thread({backend.launches_from_first_cpu ? cpus.front() : cpus.back()});
  std::vector<CaseName> cases;
  for (const Benchmark& definition : all_benchmarks()) {
    for (CaseName& name : definition.cases(profile, device->facts()))
      cases.push_back(std::move(name));
  }
  register_with_google_benchmark(*device, cases, profile, 0);
  CountingReporter reporter;
  const std::size_t matched = benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::ClearRegisteredBenchmarks();  // the cases go before the device does
  if (matched == 0) return ExitCode::wrong_usage;
  return reporter.errors > 0 ? ExitCode::failed : ExitCode::done;
}

}  // namespace launchgap::cli
