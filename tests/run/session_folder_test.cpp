#include "harness/run/session_folder.h"

#include <csignal>
#include <fstream>
#include <sys/resource.h>

#include <gmock/gmock.h>

#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/output_file.h"
#include "harness/record/records.h"
#include "harness/record/session_record.h"
#include "tests/device/a_device.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

SessionRecord begun() {
  SessionRecord record;
  record.session_id = "s";
  record.host.node = "n";
  return record;
}

DeviceFacts gpu() {
  return a_device("GPU-1", "");
}

PlannedRun run() {
  return {"GPU-1", "launch+trace_level=all", Arm::traced, 3, {{"launch/null", 1}}};
}

std::string text_of_file(const fs::path& path) {
  return InputFile(path).text(1 << 22);
}

std::vector<Json> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(parse_json(line));
  return lines;
}

struct ARunningSession : ::testing::Test {
  TemporaryFolder temporary;
  SessionFolder folder{temporary.path() / "session", begun()};
};

TEST_F(ARunningSession, HasAFolderOfItsOwn) {
  EXPECT_TRUE(fs::is_directory(folder.path() / "records"));
  EXPECT_THROW(SessionFolder(folder.path(), begun()), UsageError) << "it is not empty";
  EXPECT_NO_THROW(SessionFolder(temporary.path() / "another", begun()));
  std::ofstream(temporary.path() / "file") << "text";
  EXPECT_THROW(SessionFolder(temporary.path() / "file", begun()), UsageError);
  EXPECT_THROW(SessionFolder(temporary.path() / "file" / "below", begun()), UsageError);
}

TEST_F(ARunningSession, SaysItsState) {
  folder.record().end_utc = "today";
  folder.write("running", {gpu()});
  const Json json = parse_json(text_of_file(folder.path() / "session.json"));
  EXPECT_EQ(json.at("state"), "running");
  EXPECT_EQ(json.at("devices").at(0).at("uuid"), "GPU-1");
  EXPECT_EQ(json.at("end_utc"), "today");
}

/// As where the disk is full: no file may grow, and what is there may be written over.
TEST_F(ARunningSession, IsNeverLeftRunning) {
  folder.write("running", {});
  folder.record().filter = std::string(10'000, 'x');
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{fs::file_size(folder.path() / "session.json"), before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  EXPECT_THROW(folder.write_last("complete", {}), WriteError);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  const Json json = parse_json(text_of_file(folder.path() / "session.json"));
  EXPECT_EQ(json.at("state"), "stopped");
}

TEST_F(ARunningSession, NamesRecordsByRunAndAttempt) {
  EXPECT_EQ(folder.records(run(), gpu(), 0).filename(),
            "n.GPU-1.r3.traced.launch+trace_level=all.jsonl");
  EXPECT_EQ(folder.records(run(), gpu(), 1).filename(),
            "n.GPU-1.r3.traced.launch+trace_level=all.1.jsonl");
  EXPECT_EQ(folder.records(run(), gpu(), 2).filename(),
            "n.GPU-1.r3.traced.launch+trace_level=all.2.jsonl");
  DeviceFacts host = gpu();
  host.backend = "host";
  EXPECT_THAT(folder.records(run(), host, 0).filename().string(), HasSubstr("n.host.r3."));
}

TEST_F(ARunningSession, BeginsTheRecordsOfAWorkerThatNeverBegan) {
  folder.reopen_records(run(), gpu(), 1)
      .write(record_to_json(SummaryRecord{"launch/null", Status::failed, "", {}, {}, {}}));
  const std::vector<Json> lines = lines_of(folder.records(run(), gpu(), 1));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].at("record"), "run");
  EXPECT_EQ(lines[0].at("attempt"), 1);
  EXPECT_EQ(lines[0].at("process_config"), "launch+trace_level=all");
  EXPECT_EQ(lines[0].at("device").at("uuid"), "GPU-1");
  EXPECT_FALSE(lines[0].contains("pid"));
  EXPECT_EQ(lines[1].at("record"), "summary");
}

TEST_F(ARunningSession, GoesOnWithTheRecordsOfAWorkerThatIsGone) {
  const fs::path file = folder.records(run(), gpu(), 0);
  std::ofstream(file) << to_line(new_record("run")) << R"({"schema":"launchgap/1","rec)";
  folder.reopen_records(run(), gpu(), 0).write(record_to_json(EndRecord{}));
  const std::vector<Json> lines = lines_of(file);
  ASSERT_EQ(lines.size(), 2u) << "a torn line is cut off";
  EXPECT_EQ(lines[1].at("record"), "end");
}

}  // namespace
}  // namespace launchgap
