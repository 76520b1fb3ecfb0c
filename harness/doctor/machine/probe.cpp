#include "harness/doctor/machine/probe.h"

#include <csignal>
#include <memory>
#include <sys/wait.h>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/run/process.h"

namespace launchgap::doctor {
namespace {

/// A probe that runs.
struct Asked {
  std::size_t index = 0;
  std::unique_ptr<WorkerProcess> worker;
  std::int64_t until_ns = 0;
  std::string at;     // what it began last
  bool done = false;  // it said that it was at its end
};

void take_messages(Asked& asked, ProbeAnswer& answer) {
  for (const Json& message : asked.worker->receive()) {
    if (const auto at = maybe<std::string>(message, "at")) asked.at = *at;
    if (message.is_object() && message.contains("done")) asked.done = true;
    if (const auto step = maybe<Json>(message, "step")) answer.steps.push_back(*step);
    if (const auto facts = maybe<Json>(message, "facts")) answer.facts.update(*facts);
    if (const auto error = maybe<std::string>(message, "error")) answer.facts["error"] = *error;
  }
}

std::string where(const Asked& asked) {
  return asked.at.empty() ? "" : fmt::format(" in {}", asked.at);
}

/// What a library left running goes with the probe. Its group is told as long as the probe's number
/// is still its own.
void end_group(const Asked& asked) {
  ::kill(-asked.worker->pid(), SIGKILL);
}

bool has_ended(const Asked& asked) {
  siginfo_t info{};
  const auto pid = static_cast<id_t>(asked.worker->pid());
  if (waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0)
    end_group(asked);
  return asked.worker->ended().has_value();
}

/// True when it is over, with what became of it.
bool conclude(Asked& asked, const ProbeRequest& probe, ProbeAnswer& answer) {
  const bool ended = has_ended(asked);
  take_messages(asked, answer);
  if (ended) {
    const ProcessEnd& end = *asked.worker->ended();
    const bool told = asked.done || answer.facts.contains("error");
    if (end.signal != 0 || !told) {
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
  end_group(asked);
  asked.worker->kill(1);
  answer.hung = true;
  answer.died = fmt::format("there was no answer within {:g} s{}", probe.timeout_s, where(asked));
  return true;
}

/// By a signal that is held back until this process has tidied up.
bool is_told_to_end() {
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
         sigismember(&pending, SIGHUP) == 1;
}

}  // namespace

std::vector<ProbeAnswer> ask(const std::vector<ProbeRequest>& probes, std::size_t at_once) {
  std::vector<ProbeAnswer> answers(probes.size());
  std::vector<Asked> running;
  std::size_t next = 0;
  while (next < probes.size() || !running.empty()) {
    if (is_told_to_end()) {
      for (std::size_t i = next; i < probes.size(); ++i) answers[i].died = "it was not asked";
      for (const Asked& asked : running) {
        end_group(asked);
        answers[asked.index].died = "it was stopped";
      }
      return answers;
    }
    while (next < probes.size() && running.size() < at_once) {
      const ProbeRequest& probe = probes[next];
      try {
        running.push_back({next,
                           std::make_unique<WorkerProcess>(probe.job, probe.environment),
                           now_ns() + static_cast<std::int64_t>(probe.timeout_s * 1e9),
                           "",
                           false});
      } catch (const std::exception& error) {
        answers[next].died = printable(error.what());
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
