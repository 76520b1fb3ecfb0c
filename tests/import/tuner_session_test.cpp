#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/core/output_file.h"
#include "harness/import/tuner_cache.h"
#include "harness/record/json.h"
#include "tests/error_of.h"

namespace launchgap::recording {
namespace {

using namespace testing;
namespace fs = std::filesystem;

struct TunerSessions : Test {
  static std::string cache(const std::string& gpu,
                           const std::string& kernel,
                           const std::string& configurations) {
    return fmt::format(R"({{"device_name":"{}","kernel_name":"{}","problem_size":[64,32],)"
                       R"("tune_params_keys":["A","B"],"tune_params":{{}},"cache":{{{}}}}})",
                       gpu,
                       kernel,
                       configurations);
  }
  /// Of files with these contents.
  ImportRequest request(const std::vector<std::string>& contents) const {
    ImportRequest made;
    made.output = session_;
    for (const std::string& content : contents) {
      made.files.push_back(folder_.path() / fmt::format("cache-{}", made.files.size()));
      write_file(made.files.back(), content);
    }
    return made;
  }
  std::string times(const char* name) const {
    std::ifstream in(session_ / "tuning" / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const TemporaryFolder folder_;
  const fs::path session_ = folder_.path() / "session";
};

TEST_F(TunerSessions, HaveADevicePerGpuAndAFilePerKernel) {
  EXPECT_THAT(import_tuner_caches(
                  request({cache("B", "Xgemm", R"("1,1":{"time":2},"2,1":{"time":"Failed"})"),
                           cache("A", "Xgemm", R"("1,1":{"time":0.5,"times":[0.5,0.5]})"),
                           cache("B", "Größe", R"("3,1":{"time":4})")})),
              ElementsAre("4 configurations of 3 tunings on 2 GPUs, 1 failed: nothing was measured "
                          "here"));
  std::ifstream in(session_ / "session.json");
  const std::string text(std::istreambuf_iterator<char>(in), {});
  EXPECT_THAT(text, StartsWith("{\n \""));
  EXPECT_THAT(text, HasSubstr("\"Größe\""));
  const Json json = Json::parse(text);
  ASSERT_EQ(json["devices"].size(), 2u);
  EXPECT_EQ(json["devices"][0]["name"], "B");
  EXPECT_EQ(json["devices"][0]["index"], 0);
  EXPECT_EQ(json["devices"][1]["name"], "A");
  EXPECT_EQ(json["devices"][1]["index"], 1);
  EXPECT_EQ(json["devices"][1]["usable"], true);
  const std::string uuid = json["devices"][0]["uuid"];
  EXPECT_EQ(uuid.size(), std::string("tuned-").size() + 12);
  EXPECT_EQ(json["runs"], 1);
  EXPECT_EQ(json["state"], "complete");
  ASSERT_EQ(json["tuned"].size(), 3u);
  EXPECT_EQ(json["tuned"][0]["device"], uuid);
  EXPECT_EQ(json["tuned"][1]["device"], json["devices"][1]["uuid"]);
  EXPECT_EQ(json["tuned"][2]["device"], uuid);
  EXPECT_EQ(json["tuned"][2]["kernel"], "Größe");
  EXPECT_EQ(json["tuned"][2]["problem"], "64x32");
  EXPECT_EQ(json["tuned"][2]["parameters"], Json({"A", "B"}));
  EXPECT_EQ(json["tuned"][2]["file"], "2.csv");
  EXPECT_EQ(times("0.csv"),
            "configuration,ns,runs,log_sd,failure\r\n"
            "\"1,1\",2000000,0,0,\r\n"
            "\"2,1\",,0,0,Failed\r\n");
  EXPECT_EQ(times("1.csv"), "configuration,ns,runs,log_sd,failure\r\n\"1,1\",500000,2,0,\r\n");
}

TEST_F(TunerSessions, HaveAKernelOfAGpuOnce) {
  const std::string one = cache("A", "Xgemm", R"("1,1":{"time":2})");
  const ImportRequest asked = request({one, one});
  EXPECT_EQ(error_of([&] { import_tuner_caches(asked); }),
            fmt::format("{}: Xgemm of 64x32 on A is in {} already",
                        asked.files[1].string(),
                        asked.files[0].string()));
  EXPECT_FALSE(fs::exists(session_));
}

TEST_F(TunerSessions, AreOfCachesAlone) {
  const ImportRequest asked = request({cache("A", "Xgemm", R"("1,1":{"time":2})"), "[]"});
  EXPECT_THROW(import_tuner_caches(asked), UsageError);
  EXPECT_EQ(
      error_of([&] { import_tuner_caches(asked); }),
      asked.files[1].string() +
          ": it is no cache of Kernel Tuner, as the first file is; import each kind by itself");
  EXPECT_FALSE(fs::exists(session_));
}

TEST_F(TunerSessions, LeaveAFolderThatWasThere) {
  fs::create_directories(session_);
  EXPECT_THROW(import_tuner_caches(request({cache("A", "Xgemm", "")})), UsageError);
  EXPECT_TRUE(fs::is_empty(session_));
}

}  // namespace
}  // namespace launchgap::recording
