#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/import/readers.h"
#include "tests/error_of.h"
#include "tests/import/sqlite_file.h"

namespace launchgap::recording {
namespace {

using namespace testing;
using activity::Domain;
using activity::Purpose;

const std::string kStringTable =
    "CREATE TABLE StringTable(_id_, value); INSERT INTO StringTable VALUES (3, 'a_kernel'), (4, "
    "'Tesla V100');";

/// A table of CUPTI's records of a kind, with these columns and rows.
std::string table(const std::string& kind,
                  const std::string& columns,
                  const std::vector<std::string>& rows = {}) {
  std::string made = fmt::format("CREATE TABLE CUPTI_ACTIVITY_KIND_{}({});", kind, columns);
  for (const std::string& row : rows)
    made += fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_{} VALUES ({});", kind, row);
  return made;
}
constexpr const char* kCallColumns = R"(cbid, start, "end", correlationId, threadId, processId)";
constexpr const char* kKernelColumns =
    R"(start, "end", deviceId, contextId, streamId, correlationId, name, gridX, gridY, gridZ, blockX,
       blockY, blockZ)";
constexpr const char* kTransferColumns =
    R"(start, "end", deviceId, contextId, streamId, correlationId, bytes)";

struct Nvprof : SqliteFile {
  Recording read(const std::string& statements) const {
    return read_sqlite_report(made_by(kStringTable + statements));
  }
};

TEST_F(Nvprof, CallsHaveTheNameOfTheirNumber) {
  const Recording recording =
      read(table("RUNTIME", kCallColumns, {"211, 10, 20, 5, 6, 77", "9999, 30, 40, 7, 8, 77"}) +
           table("DRIVER",
                 kCallColumns,
                 {"307, 50, 60, 9, 6, 78", "9999, 70, 80, 10, 8, 77", "9999, 90, 95, 11, 8, 77"}));
  ASSERT_EQ(recording.processes.size(), 1u);
  const Process& process = recording.processes[0];
  EXPECT_EQ(process.pid, 77u) << "the first";
  EXPECT_THAT(process.threads, ElementsAre("6", "8"));
  EXPECT_THAT(
      process.trace.names(),
      ElementsAre("cudaLaunchKernel", "runtime call 9999", "cuLaunchKernel", "driver call 9999"));
  EXPECT_THAT(process.trace.calls,
              ElementsAre(activity::Call{10, 20, 5, 0, 0, Domain::runtime, Purpose::launch},
                          activity::Call{30, 40, 7, 1, 1, Domain::runtime, Purpose::other},
                          activity::Call{50, 60, 9, 0, 2, Domain::driver, Purpose::launch},
                          activity::Call{70, 80, 10, 1, 3, Domain::driver, Purpose::other},
                          activity::Call{90, 95, 11, 1, 3, Domain::driver, Purpose::other}));
  EXPECT_THAT(recording.remarks,
              ElementsAre("its calls are of 2 processes, and its kernels do not say of which"));
  EXPECT_EQ(recording.recorder, "nvprof");
  EXPECT_EQ(recording.form, "SQLite");
  EXPECT_EQ(recording.clock, "Unix time");
}

TEST_F(Nvprof, AFileOfOneProcessNeedsNoRemark) {
  EXPECT_THAT(read(table("RUNTIME", kCallColumns, {"211, 10, 20, 5, 6, 77"})).remarks, IsEmpty());
}

TEST_F(Nvprof, KernelsHaveAStreamANameAndAGrid) {
  for (const char* const kind : {"CONCURRENT_KERNEL", "KERNEL"}) {
    const Recording recording =
        read(table(kind,
                   kKernelColumns,
                   {"10, 20, 1, 2, 7, 9, 3, 4, 5, 6, 32, 33, 34",
                    "30, 40, 1, 2, 8, 10, 99, NULL, NULL, NULL, NULL, NULL, NULL"}));
    const Process& process = recording.processes[0];
    EXPECT_THAT(process.streams, ElementsAre(Stream{1, 2, 7}, Stream{1, 2, 8}));
    EXPECT_THAT(process.trace.kernels,
                ElementsAre(activity::KernelRun{10, 20, 9, 0, 0, {4, 5, 6}, {32, 33, 34}},
                            activity::KernelRun{30, 40, 10, 1, 1}));
    EXPECT_THAT(process.trace.names(), ElementsAre("a_kernel", "(unnamed)"));
  }
}

TEST_F(Nvprof, CopiesFromTheHostAreToldByTheirKind) {
  const Recording recording =
      read(table("MEMCPY",
                 kTransferColumns + std::string(", copyKind"),
                 {"10, 20, 1, 2, 7, 9, 4096, 1", "20, 30, 1, 2, 7, 9, 4096, 2"}));
  const auto& transfers = recording.processes[0].trace.transfers;
  EXPECT_TRUE(transfers.at(0).from_host);
  EXPECT_FALSE(transfers.at(1).from_host);
}

TEST_F(Nvprof, TransfersAndOverheadsAreTaken) {
  const Recording recording =
      read(table("MEMCPY", kTransferColumns, {"10, 20, 1, 2, 7, 9, 4096"}) +
           table("MEMSET", kTransferColumns, {"30, 40, 3, 4, 8, 10, 8192"}) +
           table("OVERHEAD", R"(start, "end")", {"50, 60"}));
  const Process& process = recording.processes[0];
  EXPECT_THAT(process.streams, ElementsAre(Stream{1, 2, 7}, Stream{3, 4, 8}));
  EXPECT_THAT(process.trace.transfers,
              ElementsAre(activity::Transfer{10, 20, 4096, 9, 0, false},
                          activity::Transfer{30, 40, 8192, 10, 1, true}));
  EXPECT_THAT(process.trace.overheads, ElementsAre(activity::Overhead{50, 60}));
  for (const char* const lacking : {"start", "\"end\""}) {
    EXPECT_THAT(read(table("OVERHEAD", lacking, {"50"})).processes[0].trace.overheads, IsEmpty());
  }
}

TEST_F(Nvprof, GpusHaveANameOfTheirOwnOrAString) {
  const Recording recording =
      read(table("DEVICE",
                 "id, name, computeCapabilityMajor, computeCapabilityMinor, globalMemorySize, uuid",
                 {"2, 4, 7, 1, 42, x'000102030405060708090A0B0C0D0EFF'",
                  "3, 'Tesla K80', 1, 3, 1, x'00000000000000000000000000000000'",
                  "4, 99, 0, 7, 0, x'0102'",
                  "5, 4, 7, 0, 42, NULL"}));
  EXPECT_THAT(recording.gpus,
              ElementsAre(Gpu{2, "Tesla V100", "00010203-0405-0607-0809-0a0b0c0d0eff", "7.1", 42},
                          Gpu{3, "Tesla K80", "", "1.3", 1},
                          Gpu{4, "99", "", "", {}},
                          Gpu{5, "Tesla V100", "", "7.0", 42}));
  EXPECT_THAT(read(table("DEVICE", "name", {"4"})).gpus, IsEmpty());
}

TEST_F(Nvprof, NamesMayBeMissing) {
  const std::string kernels =
      table("KERNEL", kKernelColumns, {"10, 20, 1, 2, 7, 9, 3, 4, 5, 6, 32, 33, 34"});
  for (const char* const strings :
       {"", "CREATE TABLE StringTable(_id_);", "CREATE TABLE StringTable(value);"}) {
    const Recording recording = read_sqlite_report(made_by(strings + kernels));
    EXPECT_THAT(recording.processes[0].trace.names(), ElementsAre("(unnamed)")) << strings;
  }
}

TEST_F(Nvprof, WhatIsMissingIsNamed) {
  const std::vector<std::string> kernel = {
      "start", "end", "deviceId", "contextId", "streamId", "correlationId", "name"};
  const std::vector<std::string> transfer = {"start", "end", "deviceId", "contextId", "streamId"};
  const std::vector<std::string> call = {"cbid", "start", "end", "correlationId"};
  const struct {
    const char* kind;
    std::vector<std::string> columns;
  } cases[] = {{"RUNTIME", call},
               {"DRIVER", call},
               {"CONCURRENT_KERNEL", kernel},
               {"KERNEL", kernel},
               {"MEMCPY", transfer},
               {"MEMSET", transfer}};
  for (const auto& [kind, columns] : cases) {
    for (const std::string& missing : columns) {
      std::string others = "other";
      for (const std::string& column : columns) {
        if (column != missing) others += fmt::format(", \"{}\"", column);
      }
      EXPECT_EQ(error_of([&, kind = kind] { read(table(kind, others)); }),
                fmt::format("its table CUPTI_ACTIVITY_KIND_{} has no column {}, which nvprof's "
                            "files have",
                            kind,
                            missing));
    }
  }
}

}  // namespace
}  // namespace launchgap::recording
