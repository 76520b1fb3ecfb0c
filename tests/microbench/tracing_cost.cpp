// What launchgap's tracing, and recording a program by `launchgap record`, cost beside the least
// that tracing can cost: a bare client of CUPTI.
//
//   launchgap-tracing-cost         compares them in fresh processes, in turns; exit 3 if launches
//   of
//                                  either take more than 1.05 times as long
//   launchgap-tracing-cost CLIENT  one process: median ns of launch call and round trip; with bare,
//                                  launchgap, recorded (by the library beside this program), plain
//
// All time the same loop on the first GPU of CUDA_VISIBLE_DEVICES.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "harness/core/clock.h"
#include "harness/core/output_file.h"
#include "harness/device/backend.h"
#include "harness/device/device.h"
#include "harness/injected/settings.h"
#include "harness/trace/cupti/cupti.h"
#include "harness/trace/tracer.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

constexpr int kBlocks = 10;
constexpr int kLaunches = 2000;
constexpr int kProcesses = 8;  // of each
constexpr double kMostRatio = 1.05;

/// As little as a client of CUPTI can do: NVIDIA's own sample, without reading the records.
namespace bare {

void buffer_requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records) {
  *bytes = 4 << 20;
  *records = 0;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *bytes));
}

void buffer_completed(cupti::abi::Context,
                      std::uint32_t,
                      std::uint8_t* buffer,
                      std::size_t,
                      std::size_t) {
  std::free(buffer);
}

void start() {
  using namespace cupti;
  const Cupti& library = Cupti::get();
  abi::Subscriber subscriber = nullptr;
  const auto ignore = [](void*, int, std::uint32_t, const void*) {};
  bool ok =
      library.cuptiSubscribe(&subscriber, ignore, nullptr) == abi::kSuccess &&
      library.cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed) == abi::kSuccess;
  if (library.cuptiActivityEnableDriverApi) {
    for (const std::uint32_t call : {abi::kLaunchKernel, abi::kLaunchKernelEx})
      library.cuptiActivityEnableDriverApi(call, 1);
  } else {
    ok = library.cuptiActivityEnable(abi::kDriverApi) == abi::kSuccess && ok;
  }
  for (const abi::Kind kind :
       {abi::kConcurrentKernel, abi::kOverhead, abi::kSynchronization, abi::kMemory2})
    ok = library.cuptiActivityEnable(kind) == abi::kSuccess && ok;
  if (!ok) {
    std::fputs("CUPTI cannot be used here\n", stderr);
    std::exit(2);
  }
}

void between_blocks() {
  cupti::Cupti::get().cuptiActivityFlushAll(0);
}

}  // namespace bare

struct Medians {
  double call_ns = 0, round_trip_ns = 0;
};

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Who records the launches.
enum class Client { plain, bare, launchgap, recorded };
constexpr std::pair<Client, const char*> kClients[] = {{Client::plain, "plain"},
                                                       {Client::bare, "bare"},
                                                       {Client::launchgap, "launchgap"},
                                                       {Client::recorded, "recorded"}};

Medians measure(Client client) {
  Tracer* tracer = nullptr;
  if (client == Client::launchgap) tracer = &start_tracer("cuda", TraceLevel::all);
  if (client == Client::bare) bare::start();
  activity::Trace trace;
  const auto between_blocks = [&] {
    if (client == Client::bare) bare::between_blocks();
    if (!tracer) return;
    tracer->collect(trace, false);
    trace.clear();
  };
  const std::vector<DeviceFacts> devices = probe_devices("cuda");
  const std::unique_ptr<Device> device = open_device("cuda", devices.at(0).uuid);
  const std::unique_ptr<Stream> stream = device->create_stream();
  const std::unique_ptr<Kernel> kernel = device->load(kernels::null_kernel);
  std::vector<double> calls, round_trips;
  for (int block = 0; block < kBlocks; ++block) {
    for (int i = 0; i < kLaunches; ++i) {
      const std::int64_t called = now_ns();
      stream->launch(*kernel, {1, 1}, nullptr);
      const std::int64_t returned = now_ns();
      stream->wait();
      const std::int64_t waited = now_ns();
      if (block == 0) continue;  // warm-up
      calls.push_back(static_cast<double>(returned - called));
      round_trips.push_back(static_cast<double>(waited - called));
    }
    between_blocks();
  }
  return {median(calls), median(round_trips)};
}

/// A folder to record into, and the environment that has a process recorded.
class Recording {
 public:
  explicit Recording(const std::string& self) {
    injected::Settings settings;
    settings.limit_bytes = std::uint64_t{1} << 30;
    write_file(folder_.path() / injected::kSettingsFile, settings.text());
    const std::filesystem::path library =
        std::filesystem::path(self).parent_path() / "liblaunchgap_record.so";
    environment_ = "CUDA_INJECTION64_PATH=" + std::filesystem::absolute(library).string() + " " +
                   injected::kFolderVariable + "=" + folder_.path().string() + " ";
  }
  const std::string& environment() const { return environment_; }

 private:
  TemporaryFolder folder_;
  std::string environment_;
};

/// One process of this program.
Medians measure_in_process(const std::string& command) {
  std::FILE* const pipe = popen(command.c_str(), "r");
  Medians medians;
  const bool read =
      pipe && std::fscanf(pipe, "%lf %lf", &medians.call_ns, &medians.round_trip_ns) == 2;
  if (!pipe || pclose(pipe) != 0 || !read) {
    std::fprintf(stderr, "%s failed\n", command.c_str());
    std::exit(2);
  }
  return medians;
}

/// In turns, there and back, so that a machine that drifts drifts for all.
int compare(const std::string& self) {
  const Recording recording(self);
  std::map<Client, std::vector<double>> calls, round_trips;
  for (int i = 0; i < kProcesses; ++i) {
    std::vector<std::pair<Client, const char*>> turn(std::begin(kClients), std::end(kClients));
    if (i % 2 == 1) std::ranges::reverse(turn);
    for (const auto& [client, name] : turn) {
      const std::string environment =
          client == Client::recorded ? recording.environment() : std::string();
      const Medians medians = measure_in_process(environment + self + " " + name);
      calls[client].push_back(medians.call_ns);
      round_trips[client].push_back(medians.round_trip_ns);
    }
  }
  bool within = true;
  for (const auto& [name, values] :
       {std::pair("launch call", &calls), std::pair("round trip", &round_trips)}) {
    const double plain = median((*values)[Client::plain]), bare = median((*values)[Client::bare]);
    std::printf("%-12s plain %8.0f ns   bare client %8.0f ns", name, plain, bare);
    for (const Client client : {Client::launchgap, Client::recorded}) {
      const double ours = median((*values)[client]);
      // The recorder has records of waits too, which the others have not.
      const bool judged = client == Client::launchgap || values == &calls;
      within = within && (!judged || ours <= kMostRatio * bare);
      std::printf("   %s %8.0f ns, %.3f times",
                  client == Client::launchgap ? "launchgap" : "recorded",
                  ours,
                  ours / bare);
    }
    std::printf("\n");
  }
  return within ? 0 : 3;
}

}  // namespace
}  // namespace launchgap

int main(int argc, char** argv) {
  using namespace launchgap;
  try {
    if (argc < 2) return compare(argv[0]);
    const auto client = std::ranges::find_if(
        kClients, [&](const auto& one) { return std::strcmp(one.second, argv[1]) == 0; });
    if (client == std::end(kClients)) return 2;
    const Medians medians = measure(client->first);
    std::printf("%.1f %.1f\n", medians.call_ns, medians.round_trip_ns);
    std::fflush(stdout);
    std::_Exit(0);  // with CUPTI in the process, what follows main() may crash
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
