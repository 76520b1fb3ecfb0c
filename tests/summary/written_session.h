// A session's folder for tests, written record by record.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "harness/core/output_file.h"
#include "harness/record/writer.h"
#include "harness/summary/session_data.h"
#include "tests/device/a_device.h"
#include "tests/summary/made.h"

namespace launchgap {

inline constexpr const char* kIdle = "launch/null/api:driver/mode:idle";

class WrittenSession : public ::testing::Test {
 protected:
  WrittenSession() {
    std::filesystem::create_directories(path / "records");
    meta = new_record("session");
    meta["session_id"] = "s";
    meta["host"] = {{"node", "n"}};
    meta["devices"] = Json::array({fields_to_json(a_device("GPU-1", "Some GPU"))});
    meta["plan"] = Json::array();
  }
  RecordWriter begin(int replicate, int attempt = 0) {
    return begin_run("GPU-1", "plain", "launch", replicate, attempt);
  }

  RecordWriter begin_run(const std::string& device,
                         const std::string& arm,
                         const std::string& process_config,
                         int replicate,
                         int attempt = 0) {
    RecordWriter writer =
        RecordWriter::create(path / "records" /
                             std::filesystem::path(device + "." + arm + "." + process_config + "." +
                                                   std::to_string(replicate) + "." +
                                                   std::to_string(attempt) + ".jsonl"));
    Json run = new_record("run");
    run["device"] = {{"uuid", device}};
    run["replicate"] = replicate;
    run["attempt"] = attempt;
    run["arm"] = arm;
    run["process_config"] = process_config;
    if (begins_ns) run["begin_ns"] = *begins_ns;
    writer.write(run);
    return writer;
  }

  void add_device(const std::string& uuid) {
    Json device = meta["devices"][0];
    device["uuid"] = uuid;
    meta["devices"].push_back(device);
  }

  static void samples(RecordWriter& writer,
                      const std::string& name,
                      const std::vector<double>& values) {
    columns(writer, name, {{"api_ns", values}});
  }

  /// Samples that have these columns.
  static void columns(RecordWriter& writer,
                      const std::string& name,
                      const std::vector<Column>& columns) {
    Block block({}, columns.front().values.size());
    for (std::size_t i = 0; i < columns.front().values.size(); ++i) block.keep(0);
    block.close();
    writer.write_samples(name, 0, 0, block, columns);
  }

  static void summary(RecordWriter& writer,
                      const std::string& name,
                      const char* status,
                      const char* reason = "") {
    Json record = new_record("summary");
    record["case"] = name;
    record["status"] = status;
    record["reason"] = reason;
    record["method"] = "by hand";
    writer.write(record);
  }

  /// All of a run of one case.
  static void run_of_case(RecordWriter writer,
                          const std::string& name,
                          const std::vector<Column>& of_case,
                          const char* status = "ok") {
    columns(writer, name, of_case);
    summary(writer, name, status);
    end(writer);
  }

  static void end(RecordWriter& writer, std::optional<double> duration_s = {}) {
    Json record = new_record("end");
    record["status"] = "ok";
    if (duration_s) record["duration_s"] = *duration_s;
    writer.write(record);
  }

  SessionData read() {
    write_file(path / "session.json", meta.dump());
    return read_session(path);
  }

  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path();
  Json meta;
  std::optional<std::int64_t> begins_ns;  // of the next runs
};

}  // namespace launchgap
