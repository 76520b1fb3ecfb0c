#include "harness/doctor/probes/probe.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/doctor/printable.h"
#include "harness/run/process.h"

namespace launchgap::doctor {
namespace {

/// A probe that runs.
struct Asked {
  std::size_t index = 0;
  std::unique_ptr<WorkerProcess> worker;
  std::int64_t until_ns = 0;
  std::string at;  // what it began last
};

void take_messages(Asked& asked, ProbeAnswer& answer) {
  for (const Json& message : asked.worker->receive()) {
    if (const auto at = maybe<std::string>(message, "at")) asked.at = *at;
    if (const auto step = maybe<Json>(message, "step")) answer.steps.push_back(*step);
    if (const auto facts = maybe<Json>(message, "facts")) answer.facts.update(*facts);
    if (const auto error = maybe<std::string>(message, "error")) answer.facts["error"] = *error;
  }
}

std::string where(const Asked& asked) {
  return asked.at.empty() ? "" : fmt::format(" in {}", asked.at);
}

/// True when it is over, with what became of it.
bool conclude(Asked& asked, const Probe& probe, ProbeAnswer& answer) {
  const bool ended = asked.worker->ended().has_value();
  take_messages(asked, answer);
  if (ended) {
    const ProcessEnd& end = *asked.worker->ended();
    if (end.signal != 0 || (!end.clean() && !answer.facts.contains("error"))) {
      const std::string output = asked.worker->last_output();
      answer.died = fmt::format("the process {}{}{}{}",
                                end.text(),
                                where(asked),
                                output.empty() ? "" : ": ",
                                printable(output));
    }
    return true;
  }
  if (now_ns() < asked.until_ns) return false;
  asked.worker->kill(1);
  answer.hung = true;
  answer.died = fmt::format("there was no answer within {:g} s{}", probe.timeout_s, where(asked));
  return true;
}

}  // namespace

std::vector<ProbeAnswer> ask(const std::vector<Probe>& probes, std::size_t at_once) {
  std::vector<ProbeAnswer> answers(probes.size());
  std::vector<Asked> running;
  std::size_t next = 0;
  while (next < probes.size() || !running.empty()) {
    while (next < probes.size() && running.size() < at_once) {
      const Probe& probe = probes[next];
      try {
        running.push_back({next,
                           std::make_unique<WorkerProcess>(probe.job, probe.environment),
                           now_ns() + static_cast<std::int64_t>(probe.timeout_s * 1e9),
                           ""});
      } catch (const Error& error) {
        answers[next].died = error.what();
      }
      ++next;
    }
    if (running.empty()) continue;
    std::vector<WorkerProcess*> workers;
    for (const Asked& asked : running) workers.push_back(asked.worker.get());
    wait_for_any(workers, 50);
    std::erase_if(running, [&](Asked& asked) {
      return conclude(asked, probes[asked.index], answers[asked.index]);
    });
  }
  return answers;
}

}  // namespace launchgap::doctor
