// launchgap worker: internal, and a plain Google Benchmark program.
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "harness/cli/command.h"
#include "harness/core/cpus.h"
#include "harness/core/say.h"
#include "harness/device/backend.h"
#include "harness/doctor/doctor.h"
#include "harness/measure/loop.h"
#include "harness/measure/neighbour.h"
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
    "                         --benchmark_list_tests, --benchmark_repetitions=5,\n"
    "                         --benchmark_format=json, --benchmark_out=FILE\n"
    "\n"
    "`launchgap run` starts workers by `worker --job`, and these a second process by\n"
    "`worker --neighbour`, which are internal.\n"
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
      if (i + 1 == argc) throw UsageError("worker: {} needs a value", name);
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

/// Counts cases that reported an error, since Google Benchmark's own exit code does not, and hands
/// everything to the reporter that --benchmark_format names.
class CountingReporter : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& context) override { return shown_->ReportContext(context); }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) errors += failed(run);
    shown_->ReportRuns(runs);
  }
  void Finalize() override { shown_->Finalize(); }
  int errors = 0;

 private:
  benchmark::BenchmarkReporter* shown_ = benchmark::CreateDefaultDisplayReporter();  // never freed
};

/// Google Benchmark prints its usage for a format that it does not know, and ends as if all was
/// well.
void check_formats(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    for (const std::string option : {"--benchmark_format=", "--benchmark_out_format="}) {
      if (!argument.starts_with(option)) continue;
      const std::string format = argument.substr(option.size());
      if (format != "console" && format != "json" && format != "csv")
        throw UsageError("worker: {}{}: it can be console, json or csv", option, format);
    }
  }
}

/// The arguments, with colours off before any that the user chose where NO_COLOR asks for none.
/// Otherwise Google Benchmark colours what goes to a terminal.
std::vector<char*> with_colour_rule(int argc, char** argv) {
  static std::string no_colour = "--benchmark_color=false";
  std::vector<char*> all(argv, argv + argc);
  if (std::getenv("NO_COLOR")) all.insert(all.begin() + 1, no_colour.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

ExitCode worker_main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--job") == 0) {
    const Json job = receive_job();
    const std::optional<int> probed = doctor::answer_probe_job(job);
    return static_cast<ExitCode>(probed ? *probed : run_job(job));
  }
  if (argc == 4 && std::strcmp(argv[1], "--neighbour") == 0)
    return static_cast<ExitCode>(serve_as_neighbour(argv[2], std::atoi(argv[3])));
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0 || std::strcmp(argv[i], "-h") == 0) {
      answer_text(kHelp);
      return ExitCode::done;
    }
  }
  const std::string uuid = take_option(argc, argv, "--device", "host");
  const Profile profile = parse_profile(take_option(argc, argv, "--profile", "quick"));
  check_formats(argc, argv);
  std::vector<char*> arguments = with_colour_rule(argc, argv);
  argc = static_cast<int>(arguments.size()) - 1;
  benchmark::Initialize(&argc, arguments.data());
  if (argc > 1)
    throw UsageError("worker: '{}' is not known. `launchgap worker --help` shows what is",
                     arguments[1]);

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
