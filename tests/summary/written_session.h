// A session's folder for tests, written record by record.
#pragma once

#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "harness/core/csv_writer.h"
#include "harness/record/writer.h"
#include "harness/summary/session_data.h"

namespace launchgap {

inline constexpr const char* kIdle = "launch/null/api:driver/mode:idle";

class WrittenSession : public ::testing::Test {
 protected:
  WrittenSession()
      : path(std::filesystem::temp_directory_path() /
             ("launchgap-session-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path / "records");
    meta = new_record("session");
    meta["session_id"] = "s";
    meta["host"] = {{"node", "n"}};
    DeviceFacts device;
    device.uuid = "GPU-1";
    device.name = "Some GPU";
    device.backend = "cuda";
    meta["devices"] = Json::array({fields_to_json(device)});
    meta["plan"] = Json::array();
  }
  ~WrittenSession() override { std::filesystem::remove_all(path); }

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
    Block block({"api_ns"}, values.size());
    for (const double value : values) block.keep(0, value);
    block.close();
    writer.write_samples(name, 0, 0, block);
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

  static void end(RecordWriter& writer) {
    Json record = new_record("end");
    record["status"] = "ok";
    writer.write(record);
  }

  SessionData read() {
    write_file(path / "session.json", meta.dump());
    return read_session(path);
  }

  std::filesystem::path path;
  Json meta;
};

}  // namespace launchgap
