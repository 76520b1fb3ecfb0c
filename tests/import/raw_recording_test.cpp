#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/errors.h"
#include "harness/core/output_file.h"
#include "harness/core/process_config.h"
#include "harness/import/readers.h"
#include "harness/injected/raw_file.h"
#include "harness/injected/record_encoder.h"

namespace launchgap::recording {
namespace {

namespace fs = std::filesystem;
namespace abi = cupti::abi;
using activity::Domain;
using activity::Purpose;
using injected::RawFile;
using injected::RawHeader;
using injected::RawState;
using injected::RecordEncoder;
using testing::ElementsAre;
using testing::HasSubstr;

/// A buffer of CUPTI's, and the library's way through it.
struct Records {
  std::vector<std::vector<std::uint8_t>> all;
  std::size_t at = 0;

  template <class Record>
  void add(const Record& record) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&record);
    all.emplace_back(bytes, bytes + sizeof record);
  }
};
Records* being_read = nullptr;

abi::Result next_record(std::uint8_t*, std::size_t, abi::Activity** record) {
  if (being_read->at == being_read->all.size()) return abi::kMaxLimitReached;
  *record = reinterpret_cast<abi::Activity*>(being_read->all[being_read->at++].data());
  return abi::kSuccess;
}

class RawRecordings : public testing::Test {
 protected:
  RawRecordings() {
    cupti_.cuptiActivityGetNextRecord = next_record;
    cupti_.version = 13;
    file_.limit(std::uint64_t{1} << 30);
    EXPECT_TRUE(file_.create(folder_.path().string()));
    file_.header.pid = 4242;
    file_.header.rank = 3;
    file_.header.level = 2;
    file_.header.cuda_version = 13000;
    file_.header.state = RawState::ended;
    std::strcpy(file_.header.command, "/usr/bin/python train.py ");
    encoder_.keep_driver_call(abi::kLaunchKernel);
    encoder_.keep_runtime_call(abi::kCudaLaunchKernel);
  }

  void encode(Records& records) {
    being_read = &records;
    records.at = 0;
    encoder_.encode(nullptr, 0);
    file_.flush();
    file_.write_header();
  }

  fs::path path() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path()))
      return entry.path();
    return {};
  }
  Recording read() const { return read_recording(path()); }
  std::string bytes() const {
    std::ostringstream text;
    text << std::ifstream(path(), std::ios::binary).rdbuf();
    return text.str();
  }

  static abi::ApiActivity call(std::uint64_t start, std::uint32_t correlation) {
    return {abi::kDriverApi, abi::kLaunchKernel, start, start + 2500, 4242, 17, correlation, 0};
  }
  static abi::KernelActivity kernel(std::uint64_t start, std::uint32_t correlation) {
    abi::KernelActivity kernel{};
    kernel.kind = abi::kConcurrentKernel;
    kernel.start = start;
    kernel.end = start + 1500;
    kernel.device = 1;
    kernel.context = 1;
    kernel.stream = 13;
    kernel.grid_x = 80;
    kernel.grid_y = kernel.grid_z = 1;
    kernel.block_x = 256;
    kernel.block_y = kernel.block_z = 1;
    kernel.correlation = correlation;
    kernel.name = "_Z4fillPf";
    return kernel;
  }

  TemporaryFolder folder_;
  injected::CuptiLibrary cupti_;
  RawFile file_;
  RecordEncoder encoder_{file_, cupti_};
};

constexpr std::uint64_t kBegin = 1'790'000'000'000'000'000;

TEST_F(RawRecordings, AreReadAsTheyWereWritten) {
  Records records;
  records.add(call(kBegin, 1));
  records.add(kernel(kBegin + 5000, 1));
  records.add(abi::ApiActivity{abi::kRuntimeApi,
                               abi::kCudaLaunchKernel,
                               kBegin + 9000,
                               kBegin + 12000,
                               4242,
                               18,
                               0xFFFFFFFF,
                               0});
  records.add(abi::TransferActivity{
      abi::kMemcpy, 0x30201, 4096, kBegin + 8000, kBegin + 8500, 1, 1, 13, 7});
  records.add(abi::TransferActivity{abi::kMemset, 0, 64, kBegin + 8600, kBegin + 8700, 1, 1, 7, 8});
  records.add(abi::SynchronizationActivity{
      abi::kSynchronization, abi::kStreamSynchronize, kBegin + 9100, kBegin + 9900, 9, 1, 13, 0});
  records.add(abi::OverheadActivity{
      abi::kOverhead, abi::kModuleLoading, 2, {4242, 17, 0}, kBegin + 100, kBegin + 900});
  encode(records);
  encoder_.range(kBegin - 50, kBegin + 20000, 17, "step#1", 6);
  file_.flush();
  file_.write_header();

  const Recording recording = read();
  EXPECT_EQ(recording.recorder, "launchgap");
  EXPECT_EQ(recording.name(), "python train.py, process 4242");
  EXPECT_EQ(recording.conditions.at("level"), "all");
  EXPECT_EQ(recording.driver_version, "of CUDA 13.0");
  EXPECT_TRUE(recording.remarks.empty());
  ASSERT_EQ(recording.processes.size(), 1);
  const Process& process = recording.processes[0];
  EXPECT_EQ(process.pid, 4242);
  EXPECT_EQ(process.rank, 3);
  EXPECT_THAT(process.threads, ElementsAre("17", "18"));
  EXPECT_THAT(process.streams, ElementsAre(Stream{1, 1, 13}, Stream{1, 1, 7}));
  const activity::Trace& trace = process.trace;
  const auto begin = static_cast<std::int64_t>(kBegin);
  ASSERT_EQ(trace.calls.size(), 2);
  EXPECT_EQ(trace.calls[0],
            (activity::Call{
                begin, begin + 2500, 1, 0, trace.calls[0].id, Domain::driver, Purpose::launch}));
  EXPECT_EQ(trace.name(trace.calls[0].id), "cuLaunchKernel");
  EXPECT_EQ(trace.calls[1].correlation, 0xFFFFFFFF);
  EXPECT_EQ(trace.calls[1].thread, 1);
  EXPECT_EQ(trace.name(trace.calls[1].id), "cudaLaunchKernel");
  ASSERT_EQ(trace.kernels.size(), 1);
  EXPECT_EQ(trace.kernels[0],
            (activity::KernelRun{
                begin + 5000, begin + 6500, 1, 0, trace.kernels[0].name, {80, 1, 1}, {256, 1, 1}}));
  EXPECT_EQ(trace.name(trace.kernels[0].name), "fill(float*)");
  EXPECT_THAT(trace.transfers,
              ElementsAre(activity::Transfer{begin + 8000, begin + 8500, 4096, 7, 0, false, true},
                          activity::Transfer{begin + 8600, begin + 8700, 64, 8, 1, true}));
  EXPECT_THAT(trace.waits, ElementsAre(activity::Wait{begin + 9100, begin + 9900, 9, 3}));
  EXPECT_THAT(trace.overheads,
              ElementsAre(activity::Overhead{
                  begin + 100, begin + 900, 0, activity::OverheadKind::module_loading}));
  ASSERT_EQ(process.ranges.size(), 1);
  EXPECT_EQ(trace.name(process.ranges[0].name), "step#1");
  EXPECT_EQ(process.ranges[0].begin_ns, begin - 50);
  EXPECT_EQ(process.ranges[0].end_ns, begin + 20000);
}

TEST(RawLevels, AreThoseOfTracing) {
  std::uint32_t number = 0;
  for (const TraceLevel level : {TraceLevel::launches, TraceLevel::kernels, TraceLevel::all})
    EXPECT_EQ(injected::kRawLevels[number++], name_of(level));
  EXPECT_EQ(number, std::size(injected::kRawLevels));
}

TEST_F(RawRecordings, PassOverCallsThatNobodyAskedFor) {
  Records records;
  abi::ApiActivity other = call(kBegin, 1);
  other.call = 303;  // cuCtxSetCurrent, which an old CUPTI records with all others
  records.add(other);
  records.add(call(kBegin + 10, 2));
  encode(records);
  EXPECT_EQ(read().processes[0].trace.calls.size(), 1);
}

TEST_F(RawRecordings, TakeAtMostSixtyBytesForALaunch) {
  constexpr int kLaunches = 10'000;
  Records records;
  for (std::uint32_t i = 0; i < kLaunches; ++i) {
    const std::uint64_t at = kBegin + std::uint64_t{7919} * i;
    records.add(call(at, 3 * i));
    records.add(kernel(at + 4000 + i % 977, 3 * i));
  }
  encode(records);
  EXPECT_LE(fs::file_size(path()) - sizeof(RawHeader), 60 * kLaunches);
  const Recording recording = read();
  EXPECT_EQ(recording.processes[0].trace.kernels.size(), kLaunches);
  EXPECT_EQ(recording.processes[0].trace.kernels.back().begin_ns,
            static_cast<std::int64_t>(kBegin + std::uint64_t{7919} * 9999 + 4000 + 9999 % 977));
}

TEST_F(RawRecordings, KeepTheNamesOfAModuleThatIsUnloaded) {
  char name[] = "first";
  Records records;
  abi::KernelActivity one = kernel(kBegin, 1);
  one.name = name;
  records.add(one);
  encode(records);
  std::strcpy(name, "other");  // in the same place
  Records later;
  one.correlation = 2;
  later.add(one);
  encode(later);
  const Recording recording = read();
  const activity::Trace& trace = recording.processes[0].trace;
  EXPECT_EQ(trace.name(trace.kernels[0].name), "first");
  EXPECT_EQ(trace.name(trace.kernels[1].name), "other");
}

TEST_F(RawRecordings, StopAtTheirLimitInWholeBlocks) {
  file_.limit(100);
  Records records;
  records.add(call(kBegin, 1));
  records.add(kernel(kBegin + 5000, 1));
  encode(records);
  EXPECT_EQ(file_.failure(), nullptr);
  encode(records);
  encode(records);
  ASSERT_NE(file_.failure(), nullptr);
  EXPECT_THAT(file_.failure(), HasSubstr("its limit of 100 bytes"));
  EXPECT_LE(fs::file_size(path()), sizeof(RawHeader) + 100);
  EXPECT_GE(read().processes[0].trace.kernels.size(), 1);
}

TEST_F(RawRecordings, AreReadUpToTheirLastWholeBlock) {
  Records records;
  records.add(call(kBegin, 1));
  encode(records);
  const std::string one = bytes();
  Records later;
  later.add(call(kBegin + 9000, 2));
  encode(later);
  const std::string two = bytes();
  for (std::size_t length = one.size(); length <= two.size(); ++length) {
    write_file(folder_.path() / "torn", two.substr(0, length));
    const Recording torn = read_recording(folder_.path() / "torn");
    const bool whole = length == two.size();
    EXPECT_EQ(torn.processes[0].trace.calls.size(), whole ? 2 : 1);
    // Also where it ends behind a block, the head tells that there was more.
    EXPECT_EQ(torn.remarks.empty(), whole);
  }
}

TEST_F(RawRecordings, SayWhatEndedThem) {
  file_.header.state = RawState::recording;
  file_.header.dropped = 7;
  encode(*std::make_unique<Records>());
  EXPECT_THAT(read().remarks,
              ElementsAre("7 records that CUPTI lost are missing",
                          HasSubstr("the program was killed, ended by _exit")));
  file_.header.dropped = 0;
  file_.header.state = RawState::stopped;
  std::strcpy(file_.header.reason, "there is no CUPTI");
  file_.write_header();
  EXPECT_THAT(read().remarks,
              ElementsAre("recording stopped before the program: there is no CUPTI"));
}

TEST_F(RawRecordings, DamagedOnesAreErrorsAndNoCrash) {
  Records records;
  records.add(call(kBegin, 1));
  records.add(kernel(kBegin + 5000, 1));
  encode(records);
  const std::string whole = bytes();
  write_file(folder_.path() / "cut", whole.substr(0, 100));
  EXPECT_THAT(read_recording(folder_.path() / "cut").remarks,
              ElementsAre(HasSubstr("its head is cut off")));
  // Bytes of a block, with a checksum that is right again.
  const std::size_t begin = sizeof(RawHeader) + sizeof(injected::RawBlock);
  for (std::size_t at = begin; at < whole.size(); ++at) {
    for (const char byte : {'\0', '\x7f', '\xff'}) {
      std::string changed = whole;
      changed[at] = byte;
      const std::uint64_t sum = injected::raw_checksum(
          reinterpret_cast<const unsigned char*>(changed.data()) + begin, changed.size() - begin);
      std::memcpy(changed.data() + sizeof(RawHeader) + 8, &sum, sizeof sum);
      write_file(folder_.path() / "changed", changed);
      try {
        read_recording(folder_.path() / "changed");
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("changed: "));
      }
    }
  }
}

// --- Launches into a stream that is captured ---

TEST_F(RawRecordings, ALaunchIntoACaptureIsNoLaunch) {
  constexpr std::uint32_t kBeginCapture = 539, kEndCapture = 497;
  for (const std::uint32_t id : {kBeginCapture, kEndCapture}) encoder_.keep_driver_call(id);
  Records records;
  const auto capture = [&](std::uint32_t id, std::uint64_t at, std::uint32_t thread) {
    records.add(abi::ApiActivity{abi::kDriverApi, id, at, at + 100, 4242, thread, 0, 0});
  };
  records.add(call(kBegin, 1));  // before, and its kernel is lost
  capture(kBeginCapture, kBegin + 10'000, 17);
  records.add(call(kBegin + 20'000, 2));  // captured
  records.add(call(kBegin + 30'000, 3));  // into another stream, meanwhile
  records.add(kernel(kBegin + 35'000, 3));
  capture(kEndCapture, kBegin + 40'000, 17);
  records.add(call(kBegin + 50'000, 4));  // after, lost
  capture(kBeginCapture, kBegin + 60'000, 18);
  records.add(call(kBegin + 70'000, 5));
  encode(records);
  std::vector<std::uint32_t> launches;
  const Recording recording = read();
  for (const activity::Call& one : recording.processes[0].trace.calls) {
    if (one.purpose == Purpose::launch) launches.push_back(one.correlation);
  }
  EXPECT_THAT(launches, ElementsAre(1, 3, 4, 5));  // the last capture has no end
}

TEST_F(RawRecordings, ACaptureMayNestAndEndOnAnotherThread) {
  for (const std::uint32_t id : {539u, 497u}) encoder_.keep_driver_call(id);
  Records records;
  const auto capture =
      [&](std::uint32_t id, std::uint64_t at, std::uint32_t thread, std::uint32_t result) {
        records.add(abi::ApiActivity{abi::kDriverApi, id, at, at + 100, 4242, thread, 0, result});
      };
  capture(539, kBegin, 17, 900);          // it failed
  records.add(call(kBegin + 10'000, 1));  // a launch whose kernel is lost
  capture(539, kBegin + 20'000, 17, 0);
  capture(539, kBegin + 30'000, 17, 0);  // of a second stream
  capture(497, kBegin + 40'000, 18, 0);
  records.add(call(kBegin + 50'000, 2));  // captured all the same
  capture(497, kBegin + 60'000, 17, 0);
  records.add(call(kBegin + 70'000, 3));
  records.add(kernel(kBegin + 75'000, 3));
  encode(records);
  const Recording recording = read();
  std::vector<std::uint32_t> launches;
  for (const activity::Call& one : recording.processes[0].trace.calls) {
    if (one.purpose == Purpose::launch) launches.push_back(one.correlation);
  }
  EXPECT_THAT(launches, ElementsAre(1, 3));
}

TEST_F(RawRecordings, WithoutAnyKernelNoLaunchIsTakenForACapturedOne) {
  for (const std::uint32_t id : {539u, 497u}) encoder_.keep_driver_call(id);
  Records records;
  records.add(abi::ApiActivity{abi::kDriverApi, 539, kBegin, kBegin + 100, 4242, 17, 0, 0});
  records.add(call(kBegin + 10'000, 1));
  records.add(
      abi::ApiActivity{abi::kDriverApi, 497, kBegin + 20'000, kBegin + 20'100, 4242, 17, 0, 0});
  encode(records);
  const Recording recording = read();
  EXPECT_EQ(std::ranges::count(
                recording.processes[0].trace.calls, Purpose::launch, &activity::Call::purpose),
            1);
}

TEST_F(RawRecordings, ALaunchThatFailedIsNone) {
  Records records;
  records.add(call(kBegin, 1));
  abi::ApiActivity failed = call(kBegin + 9000, 2);
  failed.return_value = 400;
  records.add(failed);
  encode(records);
  const Recording recording = read();
  const activity::Trace& trace = recording.processes[0].trace;
  ASSERT_EQ(trace.calls.size(), 2);
  EXPECT_EQ(trace.calls[1].purpose, Purpose::other);
  EXPECT_EQ(trace.name(trace.calls[1].id), "cuLaunchKernel (failed)");
  EXPECT_THAT(recording.remarks,
              ElementsAre("1 launch calls returned an error, and count for none"));
}

}  // namespace
}  // namespace launchgap::recording
