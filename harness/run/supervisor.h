// What becomes of a run whose worker works, says something, crashes, hangs or cannot be killed. A
// state machine without processes, files or clocks: events go in, and what is to be done comes out.
// docs/architecture.md has the table, "How failures travel"; tests/run/supervisor_test.cpp has a
// test for each of its rows.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "harness/core/plan.h"
#include "harness/record/records.h"
#include "harness/run/job.h"
#include "harness/run/message.h"

namespace launchgap {

/// Why a worker did not do its work.
namespace reason {
/// In the words of the worker, or of the system that did not start it.
struct Told {
  std::string words;
};
struct Ended {
  ProcessEnd how;
  std::string output;  // the last that the process printed
};
struct Hung {
  enum class At { begin, block, end } at;
  double limit_s;
};
/// It hung, and SIGKILL did not end it.
struct CannotBeKilled {};
}  // namespace reason

using Reason = std::variant<reason::Told, reason::Ended, reason::Hung, reason::CannotBeKilled>;
std::string text_of(const Reason& reason);

/// What later runs of a session leave out: cases that crashed or hung would do it again, and a hang
/// costs its whole time-out each time. What failed at one level of tracing may work at another.
class Quarantine {
 public:
  /// A case that failed in `run`.
  void add(const PlannedRun& run, const std::string& case_name, const Reason& reason);
  /// Every case of runs like `run`, which hung before its first.
  void add_all(const PlannedRun& run, const Reason& reason);
  /// Why a run leaves a case out; null if it does not.
  const std::string* find(const PlannedRun& run, const std::string& case_name) const;

 private:
  using Key = std::tuple<std::string, Arm, TraceLevel, std::string>;  // device, …, case or none
  static Key key_of(const PlannedRun& run, const std::string& case_name);
  std::map<Key, std::string> reasons_;
};

/// What happened to a run.
namespace event {
struct CannotStart {
  std::string error;
};
/// The process exists. Time before this does not count as the worker's silence.
struct Started {};
struct Said {
  Message message;
};
/// All that the worker said was handed over before.
struct Ended {
  ProcessEnd how;
  std::string output;
};
/// Time has passed.
struct Tick {};
/// After Kill: whether the process is gone.
struct Killed {
  bool gone;
};
/// The user wants the session to end.
struct Stopped {};
}  // namespace event

using RunEvent = std::variant<event::CannotStart,
                              event::Started,
                              event::Said,
                              event::Ended,
                              event::Tick,
                              event::Killed,
                              event::Stopped>;

/// What is to be done, in this order.
namespace action {
/// Starts a worker; answered by Started or CannotStart. The last of its list.
struct Start {
  int attempt;
  std::vector<std::string> cases;
  std::vector<SkippedCase> skipped;
};
/// Sends SIGKILL and waits so long for the end; answered by Killed. The last of its list.
struct Kill {
  double wait_s;
};
/// The process that cannot be killed is let be.
struct Abandon {};
/// Appends to the records of an attempt, in place of a worker that cannot.
struct Write {
  int attempt;
  std::vector<std::variant<EventRecord, SummaryRecord, EndRecord>> records;
};
/// The device is of no more use in this session.
struct GiveUpDevice {
  std::string reason;
};
/// Says something that makes the session a failed one.
struct Fail {
  std::string line;
};
/// Says something.
struct Say {
  std::string line;
};
/// So much of the plan's estimate is done or left out.
struct Advance {
  double seconds;
};
/// Nothing can be kept: the session ends here.
struct EndSession {
  std::string error;
};
/// The run is over.
struct Finish {};
}  // namespace action

using Action = std::variant<action::Start,
                            action::Kill,
                            action::Abandon,
                            action::Write,
                            action::GiveUpDevice,
                            action::Fail,
                            action::Say,
                            action::Advance,
                            action::EndSession,
                            action::Finish>;
using Actions = std::vector<Action>;

/// One planned run, over as many workers as it takes: each next attempt has the cases that are
/// left.
class RunSupervisor {
 public:
  /// `device_name` is for messages. A worker that says nothing for `timeout_s` has hung, or
  /// for five times its case's estimate if that is longer. `quarantine` is the session's.
  RunSupervisor(PlannedRun run, std::string device_name, double timeout_s, Quarantine& quarantine);

  /// First of all.
  Actions begin();
  Actions handle(const RunEvent& event, std::int64_t now_ns);

  const PlannedRun& run() const { return run_; }
  /// The case that is being measured, if one is.
  const std::optional<PlannedCase>& current() const { return current_; }
  bool over() const { return state_ == State::over; }

 private:
  enum class State { working, killing_hung, stopping, over };

  void start();
  void next_attempt();
  void take(const Message& message);
  void look_for_hang(std::int64_t now_ns);
  void ended(const event::Ended& event, std::int64_t now_ns);
  void killed(bool gone, std::int64_t now_ns);
  void abandon(std::int64_t now_ns);
  void fail_case(const Reason& reason,
                 const char* event,
                 action::Write& write,
                 std::int64_t now_ns);
  void give_up(const Reason& reason, action::Write write, bool say);
  void ended_between_cases(const Reason& reason, std::int64_t now_ns);
  void ended_badly(const Reason& reason, std::int64_t now_ns);
  void write_skipped(action::Write& write);
  void finish();
  std::string case_line(const std::string& what) const;
  std::string run_line(const std::string& what) const;

  PlannedRun run_;
  std::string device_name_;
  double timeout_s_;
  Quarantine& quarantine_;

  State state_ = State::working;
  int attempt_ = 0;
  std::deque<PlannedCase> pending_;   // not yet begun
  std::vector<SkippedCase> skipped_;  // the worker records them before it begins its first case
  std::optional<PlannedCase> current_;
  bool sticky_ = false;  // the worker is about to end, since its device is lost to it
  std::optional<message::Failed> failed_;  // what the worker said of its own end
  std::int64_t last_sign_ns_ = 0;
  reason::Hung hang_{};
  Actions todo_;
};

/// Several lambdas as one function object, for std::visit.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
// clang 14, and so clang-tidy, does not deduce an aggregate's arguments by itself.
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace launchgap
