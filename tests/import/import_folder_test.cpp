#include "harness/import/import_folder.h"

#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/file.h>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>

#include "harness/core/input_file.h"
#include "harness/core/output_file.h"
#include "tests/error_of.h"
#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

using namespace testing;
namespace fs = std::filesystem;

struct ImportFolder : Test {
  static std::vector<std::string> inside(const fs::path& folder) {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      names.push_back(entry.path().filename());
    return names;
  }
  const TemporaryFolder folder_;
  const fs::path path_ = folder_.path() / "deep" / "session";
};

TEST_F(ImportFolder, IsUnfinishedUntilItIsSaidToBe) {
  make_import_folder(path_);
  EXPECT_THAT(inside(path_), UnorderedElementsAre("records", "events", "unfinished-import"));
  finish_import(path_);
  EXPECT_THAT(inside(path_), UnorderedElementsAre("records", "events"));
  EXPECT_THROW(make_import_folder(path_), UsageError) << "it is not empty";
  EXPECT_THAT(inside(path_), UnorderedElementsAre("records", "events"));
  remove_import(path_);
  EXPECT_THAT(inside(path_), UnorderedElementsAre("records", "events")) << "it is finished";
}

TEST_F(ImportFolder, IsRemovedWithWhatWasWritten) {
  make_import_folder(path_);
  write_file(path_ / "records" / "one", "x");
  write_file(path_ / "session.json", "x");
  remove_import(path_);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(ImportFolder, StaysWhereItWasThereBefore) {
  fs::create_directories(path_);
  make_import_folder(path_);
  remove_import(path_);
  EXPECT_THAT(inside(path_), IsEmpty());
}

TEST_F(ImportFolder, OfAKilledImportIsTakenOver) {
  fs::create_directories(path_ / "records");
  write_file(path_ / "unfinished-import", "taken\n");
  write_file(path_ / "records" / "one", "x");
  make_import_folder(path_);
  EXPECT_THAT(inside(path_), UnorderedElementsAre("records", "events", "unfinished-import"));
  EXPECT_THAT(inside(path_ / "records"), IsEmpty());
  remove_import(path_);
  EXPECT_THAT(inside(path_), IsEmpty()) << "which had found it";
}

TEST_F(ImportFolder, OfOneThatWasKilledAsItBeganIsTakenOver) {
  fs::create_directories(path_);
  std::ofstream(path_ / "unfinished-import").flush();
  make_import_folder(path_);
  EXPECT_THAT(inside(path_), UnorderedElementsAre("records", "events", "unfinished-import"));
  EXPECT_EQ(InputFile(path_ / "unfinished-import").text(64), "taken\n");
}

TEST_F(ImportFolder, OfAnImportAtWorkIsRefused) {
  fs::create_directories(path_);
  const fs::path mark = path_ / "unfinished-import";
  write_file(mark, "made\n");
  const int other = open(mark.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  EXPECT_EQ(error_of([&] { make_import_folder(path_); }),
            "another import writes to " + path_.string() + ": name another with -o");
  close(other);
  // And an import keeps others out.
  make_import_folder(path_);
  const int late = open(mark.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_NE(flock(late, LOCK_EX | LOCK_NB), 0);
  close(late);
}

TEST(ImportDigests, AreThoseOfFnv1a) {
  EXPECT_EQ(digest(""), "cbf29ce484222325");
  EXPECT_EQ(digest("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(digest("foobar"), "85944171f73967e8");
  EXPECT_EQ(digest("\xFF"), "af64724c8602eb6e") << "of bytes, and not of signed ones";
}

TEST(ImportDigests, OfFilesAreThoseOfTheirSizesAndContents) {
  const TemporaryFolder folder;
  const fs::path one = folder.path() / "one", two = folder.path() / "two";
  write_file(one, "abc");
  write_file(two, std::string((1 << 18) + 1, 'x'));
  EXPECT_EQ(digest_of_files(std::vector{one, two}),
            digest("3;abc262145;" + std::string((1 << 18) + 1, 'x')));
  EXPECT_EQ(digest_of_files(std::vector{one, one}), digest("3;abc3;abc"));
  EXPECT_EQ(digest_of_files(std::vector<fs::path>{}), digest(""));
  const fs::path none = folder.path() / "none";
  EXPECT_EQ(digest_of_files(std::vector{none, one}), digest("18446744073709551615;3;abc"));
}

struct GpuFacts : Test {
  DeviceFacts facts(const Gpu& gpu, std::uint64_t number = 7) {
    recording_.gpus = {Gpu{6, "another", "GPU-other", "1.0", 1}, gpu};
    return facts_of(recording_, process_, number);
  }
  Recording recording_;
  Process process_;
};

TEST_F(GpuFacts, AreThoseThatTheRecordingTells) {
  recording_.driver_version = "550.54";
  const DeviceFacts known = facts({7, "A100", "GPU-a", "8.0", 42});
  EXPECT_EQ(known.name, "A100");
  EXPECT_EQ(known.uuid, "GPU-a");
  EXPECT_EQ(known.compute_capability, "8.0");
  EXPECT_EQ(known.memory_bytes, 42u);
  EXPECT_EQ(known.driver_version, "550.54");
  EXPECT_EQ(known.index, 7);
  EXPECT_EQ(known.backend, "cuda");
  EXPECT_EQ(facts({7, "A100", "MIG-a", "", {}}).uuid, "MIG-a");
  EXPECT_EQ(facts({7, "A100", "a", "", {}}).uuid, "GPU-a");
}

TEST_F(GpuFacts, OfAnUnknownOneAreFew) {
  const DeviceFacts unknown = facts({5, "A100", "GPU-a", "8.0", 42});
  EXPECT_EQ(unknown.name, "a GPU (not recorded which)");
  EXPECT_EQ(unknown.compute_capability, std::nullopt);
  EXPECT_EQ(unknown.memory_bytes, std::nullopt);
  EXPECT_EQ(unknown.driver_version, std::nullopt);
  EXPECT_EQ(unknown.uuid, "recorded-" + digest("||0|7|"));
}

TEST_F(GpuFacts, MakeAUuidWhereNoneIsTold) {
  EXPECT_EQ(facts({7, "A100", "", "8.0", 42}).uuid, "recorded-" + digest("A100|8.0|42|7|"));
  process_.rank = 3;
  EXPECT_EQ(facts({7, "A100", "", "8.0", 42}).uuid, "recorded-" + digest("A100|8.0|42|7|3"));
}

TEST_F(GpuFacts, AreCutToWhatCanBeShown) {
  recording_.driver_version = std::string(51, 'd');
  const std::string long_text(201, 'x');
  const DeviceFacts cut = facts({7, long_text, std::string(81, 'u'), std::string(21, 'c'), {}});
  EXPECT_NE(cut.name, long_text);
  EXPECT_NE(cut.uuid, "GPU-" + std::string(81, 'u'));
  EXPECT_NE(cut.compute_capability, std::string(21, 'c'));
  EXPECT_NE(cut.driver_version, std::string(51, 'd'));
  recording_.driver_version.pop_back();
  const DeviceFacts whole =
      facts({7, std::string(200, 'x'), std::string(80, 'u'), std::string(20, 'c'), {}});
  EXPECT_EQ(whole.name, std::string(200, 'x'));
  EXPECT_EQ(whole.uuid, "GPU-" + std::string(80, 'u'));
  EXPECT_EQ(whole.compute_capability, std::string(20, 'c'));
  EXPECT_EQ(whole.driver_version, std::string(50, 'd'));
}

TEST_F(GpuFacts, HaveAnIndexThatFits) {
  constexpr int kMost = std::numeric_limits<int>::max();
  EXPECT_EQ(facts({7, "", "", "", {}}, std::uint64_t{kMost} + 1).index, kMost);
}

TEST(UsedGpus, AreThoseOfAnyWorkOrAllocation) {
  Recording recording;
  const auto of = [&](const Process& process) { return gpus_of(recording, process); };
  EXPECT_THAT(of(Job().kernel(1, 2, 1, {3, 0, 0}).process), ElementsAre(3));
  EXPECT_THAT(of(Job().transfer(1, 2, true, {4, 0, 0}).process), ElementsAre(4));
  EXPECT_THAT(of(Job().graph(1, 2, 1, {5, 0, 0}).process), ElementsAre(5));
  Process process;
  EXPECT_THAT(of(process), ElementsAre(0)) << "of which nothing is known";
  recording.gpus = {{8, "A", "", "", {}}, {9, "B", "", "", {}}};
  EXPECT_THAT(of(process), ElementsAre(8));
  process.trace.memory.push_back({});
  process.trace.memory.back().gpu = 7;
  EXPECT_THAT(of(process), ElementsAre(7));
  process.allocations.push_back({1, 1, 1, 6, 0, 0, AllocationAction::allocate});
  EXPECT_THAT(of(process), ElementsAre(6)) << "memory of the driver counts where nothing else does";
}

TEST(UsedGpus, AreSharedWhereTwoProcessesWork) {
  Recording recording;
  recording.processes = {Job().kernel(1, 2, 1, {3, 0, 0}).process,
                         Job().call(1, 2, 1).process,  // which did nothing on one
                         Job().transfer(1, 2, true, {3, 0, 0}).kernel(1, 2, 1, {4, 0, 0}).process,
                         Job().kernel(1, 2, 1, {0, 0, 0}).process};
  using Pairs = std::map<std::uint64_t, std::size_t>;
  EXPECT_EQ(shared_gpus(recording), (Pairs{{3, 2}}));
}

}  // namespace
}  // namespace launchgap::recording
