#include "harness/import/imported_session.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/core/metric.h"
#include "harness/core/output_file.h"
#include "harness/record/json.h"
#include "tests/error_of.h"

namespace launchgap::recording {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// A trace of PyTorch's profiler; times are of Unix, in nanoseconds.
class Profile {
 public:
  Profile& call(const char* name, std::int64_t begin_ns, std::int64_t ns, int correlation) {
    const bool driver = std::string_view(name).starts_with("cuL");
    return event(driver ? "cuda_driver" : "cuda_runtime",
                 name,
                 begin_ns,
                 ns,
                 fmt::format(R"("correlation":{})", correlation));
  }
  Profile& kernel(std::int64_t begin_ns, std::int64_t ns, int correlation, int gpu = 0) {
    return event(
        "kernel",
        "a_kernel",
        begin_ns,
        ns,
        fmt::format(R"("correlation":{},"device":{},"context":1,"stream":7)", correlation, gpu));
  }
  Profile& range(const char* name, std::int64_t begin_ns, std::int64_t ns) {
    return event("user_annotation", name, begin_ns, ns, "");
  }
  Profile& memory(std::int64_t at_ns, int address, int bytes) {
    return event(
        "cpu_instant_event",
        "[memory]",
        at_ns,
        0,
        fmt::format(R"("Addr":{},"Bytes":{},"Device Type":1,"Device Id":0)", address, bytes),
        "i");
  }
  std::string text() const { return R"({"traceEvents":[)" + events_ + "]}"; }

 private:
  Profile& event(const char* category,
                 const char* name,
                 std::int64_t begin_ns,
                 std::int64_t ns,
                 const std::string& arguments,
                 const char* phase = "X") {
    events_ += fmt::format(
        R"({}{{"ph":"{}","cat":"{}","name":"{}","pid":1,"tid":1,"ts":{}.{:03},"dur":{}.{:03},"args":{{{}}}}})",
        events_.empty() ? "" : ",",
        phase,
        category,
        name,
        begin_ns / 1000,
        begin_ns % 1000,
        ns / 1000,
        ns % 1000,
        arguments);
    return *this;
  }
  std::string events_;
};

constexpr std::int64_t kBegins = 1'700'000'000'000'000'000;

/// Two launches, of which one's kernel is lost, and a copy.
Profile two_launches() {
  return Profile()
      .call("cudaLaunchKernel", kBegins, 4'000, 1)
      .kernel(kBegins + 6'000, 2'000, 1)
      .call("cuLaunchKernel", kBegins + 20'000, 5'000, 2)
      .call("cudaLaunchKernel", kBegins + 40'000, 3'000, 3)
      .kernel(kBegins + 46'000, 2'000, 3);
}

struct ImportedSession : testing::Test {
  /// The benchmarks, which bring these metrics, are not part of this program.
  static void SetUpTestSuite() {
    for (const std::string_view key : {"beside_allocations_ns",
                                       "beside_calls_ns",
                                       "beside_waits_ns",
                                       "collectives_ns",
                                       "gpu_idle_share",
                                       "graph_ns",
                                       "idle_allocating_ns",
                                       "idle_calling_ns",
                                       "idle_launch_ns",
                                       "idle_program_ns",
                                       "idle_queued_ns",
                                       "idle_unknown_ns",
                                       "idle_waiting_ns",
                                       "launch_calls_ns",
                                       "launches",
                                       "overlap_transfers_ns",
                                       "since_last_ns",
                                       "step_ns"}) {
      if (!find_metric(key)) add_metric({key, "ns", Direction::lower_is_better, "trace", "", ""});
    }
  }
  /// What the reader is told.
  std::vector<std::string> import(const std::vector<Profile>& profiles,
                                  const std::string& step = ImportRequest().step) {
    ImportRequest request;
    request.output = folder_.path() / "session";
    fs::remove_all(request.output);
    request.step = step;
    for (const Profile& profile : profiles) {
      request.files.push_back(folder_.path() / fmt::format("{}.json", request.files.size()));
      std::ofstream(request.files.back()) << profile.text();
    }
    return import_recordings(request);
  }
  Json session() const { return parse(folder_.path() / "session" / "session.json").front(); }
  /// Of this kind, of the n-th file of records by name.
  std::vector<Json> records(std::string_view kind, std::size_t file = 0) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_.path() / "session" / "records"))
      files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<Json> found;
    for (const Json& record : parse(files.at(file))) {
      if (record["record"] == kind) found.push_back(record);
    }
    return found;
  }

 private:
  static std::vector<Json> parse(const fs::path& path) {
    std::ifstream file(path);
    if (path.extension() == ".json") {
      std::stringstream all;
      all << file.rdbuf();
      return {parse_json(all.str())};
    }
    std::vector<Json> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(parse_json(line));
    return lines;
  }
  const TemporaryFolder folder_;
};

TEST_F(ImportedSession, HasARunWithWhatItsRecordingIs) {
  EXPECT_THAT(import({two_launches()}),
              ElementsAre("0.json: the kernels of 1 of 3 launches are lost"));
  EXPECT_EQ(session()["state"], "complete");
  EXPECT_EQ(session()["runs"], 1);
  EXPECT_THAT(session()["devices"], SizeIs(1));
  EXPECT_THAT(session()["notes"], SizeIs(1));
  const Json run = records("run").at(0);
  EXPECT_EQ(run["replicate"], 0);
  EXPECT_EQ(run["begin_utc"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(run["begin_ns"], kBegins);
  const Json recording = records("recording").at(0);
  EXPECT_EQ(recording["calls"], 3);
  EXPECT_EQ(recording["tick_ns"], 1'000);
  EXPECT_EQ(recording["clock_ahead_most_ns"], 6'000);
  EXPECT_FALSE(recording.contains("allocations"));
  const Json trace = records("trace").at(0);
  EXPECT_EQ(trace["counts"]["launches"], 3);
  ASSERT_THAT(trace["calls"], SizeIs(2));
  EXPECT_EQ(trace["calls"][0]["domain"], "driver");
  EXPECT_EQ(trace["calls"][0]["count"], 1);
  EXPECT_EQ(trace["calls"][1]["domain"], "runtime");
  EXPECT_EQ(trace["calls"][1]["count"], 2);
  EXPECT_EQ(records("end").at(0)["duration_s"], 43'000 * 1e-9);
}

TEST_F(ImportedSession, BeginsAtAnHourWhereItsTimesAreUnixTime) {
  constexpr std::int64_t k2001 = 1'000'000'000'000'000'000;
  for (const std::int64_t early : {0, 1}) {
    import({Profile().call("cudaLaunchKernel", k2001 - early, 0, 1)});
    EXPECT_EQ(records("run").at(0).value("begin_utc", ""), early ? "" : "2001-09-09T01:46:40Z");
    EXPECT_EQ(records("run").at(0)["begin_ns"], k2001 - early);
    EXPECT_EQ(records("end").at(0)["duration_s"], 0);
  }
}

TEST_F(ImportedSession, LastsFromTheFirstCallToTheEndOfTheLast) {
  // The second ends before the first; the one without a begin has no time.
  import({Profile()
              .call("cudaLaunchKernel", 0, 9'000, 1)
              .call("cudaLaunchKernel", 5'000, 9'000, 2)
              .call("cudaLaunchKernel", 1'000, 500, 3)
              .kernel(500, 99'000, 3)});
  EXPECT_EQ(records("run").at(0)["begin_ns"], 1'000);
  EXPECT_EQ(records("end").at(0)["duration_s"], 13'000 * 1e-9);
}

TEST_F(ImportedSession, SaysWhatIsNotThere) {
  const auto calls = Profile().call("cudaLaunchKernel", 1'000, 500, 1);
  EXPECT_THAT(
      import({calls}),
      ElementsAre("0.json: it has calls and no kernels, so it says what calls cost and nothing of "
                  "what they started. PyTorch's profiler records kernels with "
                  "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], unless another "
                  "profiler has the GPU or the driver refuses"));
  EXPECT_THAT(import({Profile().kernel(1'000, 500, 1)}),
              ElementsAre("0.json: it has kernels and no calls, so nothing tells when they were "
                          "launched"));
  EXPECT_THAT(import({Profile().call("cudaMalloc", 1'000, 500, 1)}), IsEmpty());
  EXPECT_THAT(import({Profile().call("cudaLaunchKernel", 1'000, 50, 1).kernel(2'000, 50, 1)}),
              IsEmpty());
  EXPECT_THAT(error_of([&] { import({Profile().range("a", 1, 2)}); }),
              HasSubstr("0.json: it has neither calls of CUDA, kernels nor allocations. Record"));
  EXPECT_THAT(error_of([&] { import({calls, Profile()}); }), HasSubstr("1.json: it has neither"));
}

TEST_F(ImportedSession, SaysWhichLaunchesAreOfSeveralGpus) {
  Profile profile = Profile().call("cudaLaunchKernel", 1'000, 50, 1);
  profile.kernel(2'000, 50, 1, 1).kernel(2'000, 50, 1, 0).kernel(2'500, 50, 1, 1);
  profile.call("cudaLaunchKernel", 3'000, 50, 2).kernel(4'000, 50, 2, 1);
  profile.kernel(5'000, 50, 0, 0).kernel(6'000, 50, 0, 1);  // that nobody is known to have launched
  EXPECT_THAT(import({profile}),
              ElementsAre("0.json: 1 launch call started kernels on several GPUs; each counts for "
                          "the GPU of its first kernel"));
  EXPECT_EQ(session()["runs"], 2);
  EXPECT_THAT(session()["devices"], SizeIs(2));
  const Profile one_gpu = Profile().call("cudaLaunchKernel", 1'000, 50, 1).kernel(2'000, 50, 1, 3);
  EXPECT_THAT(import({one_gpu}), IsEmpty());
}

TEST_F(ImportedSession, CountsLostLaunchesForTheFirstGpuAlone) {
  Profile profile = Profile().call("cudaLaunchKernel", 1'000, 50, 1).kernel(2'000, 50, 1, 0);
  profile.call("cudaLaunchKernel", 3'000, 50, 2).kernel(4'000, 50, 2, 1);
  profile.call("cudaLaunchKernel", 5'000, 50, 3);
  import({profile});
  int unknown = 0, launches = 0;
  for (const std::size_t file : {0, 1}) {
    for (const Json& summary : records("summary", file))
      unknown += summary["case"] == "recorded/launch/stream:unknown" ? 1 : 0;
    launches += records("job", file).at(0)["tail"]["launches"].get<int>();
  }
  EXPECT_EQ(unknown, 1);
  EXPECT_EQ(launches, 3);
}

TEST_F(ImportedSession, CountsARecordingOnceAndSeveralAsReplicates) {
  const auto other = Profile().call("cudaLaunchKernel", 1'000, 50, 1).kernel(2'000, 50, 1);
  const auto lines = import({two_launches(), two_launches(), other});
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[1], testing::StartsWith("1.json: it is the same recording as /"));
  EXPECT_THAT(lines[1], testing::EndsWith("/0.json, and counted once"));
  EXPECT_EQ(session()["runs"], 2);
  EXPECT_THAT(session()["devices"], SizeIs(1)) << "of one GPU";
  EXPECT_EQ(records("run", 0).at(0)["replicate"], 0);
  EXPECT_EQ(records("run", 1).at(0)["replicate"], 1);
}

TEST_F(ImportedSession, SaysWhereStepsThatWereAskedForAreNone) {
  const auto with_ranges = [](std::initializer_list<const char*> names) {
    Profile profile = Profile().call("cudaLaunchKernel", 1'000, 50, 1).kernel(2'000, 50, 1);
    for (const char* const name : names) profile.range(name, 1'000, 2'000);
    return profile;
  };
  EXPECT_THAT(import({with_ranges({})}), IsEmpty()) << "nobody asked for the usual ones";
  EXPECT_THAT(import({with_ranges({"mine"})}, "mine"), IsEmpty());
  EXPECT_THAT(
      import({with_ranges({})}, "mine"),
      ElementsAre("no range is named mine, so there are no steps; it has no ranges at all"));
  EXPECT_THAT(
      import({with_ranges({"e", "d", "c", "b", "a", "f"})}, "mine"),
      ElementsAre("no range is named mine, so there are no steps; some of its ranges are a, "
                  "b, c, d and e"));
  EXPECT_THAT(import({with_ranges({"a"}), with_ranges({"mine"}).kernel(9'000, 50, 1)}, "mine"),
              IsEmpty())
      << "one of the recordings has them";
}

TEST_F(ImportedSession, MayBeOfAllocationsAlone) {
  import({Profile().memory(3'000, 16, 100).memory(5'000, 32, 50).memory(9'000, 16, -100)});
  const Json recording = records("recording").at(0);
  EXPECT_EQ(recording["allocations"], 2);
  EXPECT_EQ(recording["releases"], 1);
  EXPECT_EQ(recording["most_live_bytes"], 150);
  EXPECT_EQ(recording["live_at_end_bytes"], 50);
  EXPECT_THAT(records("trace"), IsEmpty());
  EXPECT_EQ(records("run").at(0)["begin_ns"], 3'000);
  EXPECT_EQ(records("end").at(0)["duration_s"], 6'000 * 1e-9);
}

TEST_F(ImportedSession, HasSamplesInBlocksOf8192) {
  Profile profile;
  for (int i = 0; i < 8193; ++i)
    profile.call("cudaLaunchKernel", 1'000 + std::int64_t{100} * i, 40, i + 1);
  import({profile});
  std::vector<Json> blocks;
  for (const Json& samples : records("samples")) {
    if (samples["case"] == "recorded/launch/stream:unknown") blocks.push_back(samples);
  }
  ASSERT_THAT(blocks, SizeIs(2));
  EXPECT_EQ(blocks[0]["block"], 0);
  EXPECT_EQ(blocks[0]["first"], 0);
  EXPECT_THAT(blocks[0]["t0_ns"], SizeIs(8192));
  EXPECT_EQ(blocks[0]["t0_ns"][8191], 819'100);
  EXPECT_EQ(blocks[0]["end_ns"], 1'000 + 819'200) << "when the next block begins";
  EXPECT_THAT(blocks[0]["values"][0], SizeIs(8192));
  EXPECT_EQ(blocks[1]["block"], 1);
  EXPECT_EQ(blocks[1]["first"], 8192);
  EXPECT_EQ(blocks[1]["begin_ns"], 1'000 + 819'200);
  EXPECT_THAT(blocks[1]["t0_ns"], ElementsAre(0));
  EXPECT_EQ(blocks[1]["end_ns"], 1'000 + 819'240);
  EXPECT_THAT(blocks[1]["values"][0], SizeIs(1));
  EXPECT_EQ(records("summary").at(0)["n"], 8193);
}

/// 40 launches, each waited for, on a device that is 1 ms ahead; known to 1 us.
Profile on_a_device_ahead() {
  Profile profile;
  for (int i = 0; i < 40; ++i) {
    const std::int64_t called = kBegins + std::int64_t{1'000'000} * i;
    const std::int64_t begin = called + (i % 3 == 0 ? 1'001 : 12'000);
    profile.call("cudaLaunchKernel", called, 500, i + 1);
    profile.kernel(begin + 1'000'000, 20'000, i + 1);
    profile.call("cudaDeviceSynchronize", called + 600, begin - called + 20'400, 1'000 + i);
  }
  return profile;
}

TEST_F(ImportedSession, SaysHowClocksWereCorrected) {
  const auto lines = import({on_a_device_ahead()});
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0],
              testing::StartsWith("0.json: the GPU's clock was 1.00 ms ahead of the host's and "));
  EXPECT_THAT(lines[0], HasSubstr(" ppm; its times were corrected, to ± 1.00 µs"));
  const Json recording = records("recording").at(0);
  EXPECT_EQ(recording["clock_corrected"], true);
  EXPECT_NEAR(recording["clock_offset_ns"].get<double>(), 1'000'000, 30);
  EXPECT_NEAR(recording["clock_offset_error_ns"].get<double>(), 1'000, 60);
}

TEST_F(ImportedSession, SaysWhyClocksCannotBeUsed) {
  Profile profile;
  for (int i = 0; i < 3; ++i) {
    profile.call("cudaLaunchKernel", 10'000'000'000 + std::int64_t{1'000} * i, 500, i + 1);
    profile.kernel(1'000'000 + 1'000 * i, 500, i + 1);
  }
  EXPECT_THAT(import({profile}),
              ElementsAre("0.json: 3 of 3 kernels begin before their launch: the GPU's clock is "
                          "behind the host's, so there are no times from a call to its kernel"));
  EXPECT_EQ(records("recording").at(0)["clock_corrected"], false);
}

}  // namespace
}  // namespace launchgap::recording
