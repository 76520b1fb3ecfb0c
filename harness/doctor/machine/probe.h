// What can crash or hang is asked in a process of its own: a worker with a probe's task.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/record/schema.h"

namespace launchgap::doctor {

/// A question to a fresh process.
struct ProbeRequest {
  Json job;  // {"task": "doctor-…", …}; "unset" lists variables that it must not see
  std::map<std::string, std::string> environment;  // added to this process's
  double timeout_s = 5;
};

/// What came back: everything that the probe had found before it ended, however it ended.
struct ProbeAnswer {
  Json facts = Json::object();
  Json steps = Json::array();  // what it did in several steps
  std::string died;            // "was killed by SIGSEGV in cuInit"; empty if it ended as it should
  bool hung = false;           // it was killed, since it did not answer in time
};

/// Runs probes side by side, at most `at_once`, and waits for all; a probe costs at most its
/// time-out. Never throws.
std::vector<ProbeAnswer> ask(const std::vector<ProbeRequest>& probes, std::size_t at_once = 16);

/// Whether a worker's job is one of these.
bool is_probe(const Json& job);
/// The worker's side. Returns the process's exit code.
int answer_probe(const Json& job);

}  // namespace launchgap::doctor
