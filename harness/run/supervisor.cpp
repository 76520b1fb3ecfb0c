#include "harness/run/supervisor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace launchgap {
namespace {

constexpr double kWaitForKilledS = 10;
constexpr double kWaitWhenStoppedS = 5;
constexpr double kEstimatesUntilHung = 5;

SummaryRecord summary_of(const std::string& case_name, Status status, std::string reason) {
  SummaryRecord record;
  record.case_name = case_name;
  record.status = status;
  record.reason = std::move(reason);
  return record;
}

EventRecord event_of(std::string event, const Reason& reason, std::int64_t now_ns) {
  EventRecord record;
  record.event = std::move(event);
  record.at_ns = now_ns;
  record.message = text_of(reason);
  return record;
}

EndRecord end_of(const char* status, std::string reason) {
  EndRecord record;
  record.status = status;
  record.reason = std::move(reason);
  record.written_by = "parent";
  return record;
}

}  // namespace

std::string text_of(const Reason& reason) {
  return std::visit(
      Overloaded{[](const reason::Told& told) { return told.words; },
                 [](const reason::Ended& ended) {
                   return fmt::format("the process {}{}{}",
                                      ended.how.text(),
                                      ended.output.empty() ? "" : ": ",
                                      ended.output);
                 },
                 [](const reason::Hung& hung) {
                   const char* const what =
                       hung.at == reason::Hung::At::begin ? "the worker did not begin"
                       : hung.at == reason::Hung::At::end ? "the worker did not end"
                                                          : "no block was finished";
                   return fmt::format("{} within {:.0f} s: it hung", what, hung.limit_s);
                 },
                 [](const reason::CannotBeKilled&) -> std::string {
                   return "its worker could not be killed after it hung: the device is given up";
                 }},
      reason);
}

// --- Quarantine ---

Quarantine::Key Quarantine::key_of(const PlannedRun& run, const std::string& case_name) {
  const bool traced = run.arm == Arm::traced;
  return {
      run.device, run.arm, traced ? run.process_config.trace_level() : TraceLevel::none, case_name};
}

void Quarantine::add(const PlannedRun& run, const std::string& case_name, const Reason& reason) {
  reasons_[key_of(run, case_name)] =
      fmt::format("it failed in run r{}: {}", run.replicate, text_of(reason));
}

void Quarantine::add_all(const PlannedRun& run, const Reason& reason) {
  reasons_[key_of(run, "")] = fmt::format(
      "in run r{} of {}: {}", run.replicate, run.process_config.text(), text_of(reason));
}

const std::string* Quarantine::find(const PlannedRun& run, const std::string& case_name) const {
  for (const std::string& name : {case_name, std::string()}) {
    const auto found = reasons_.find(key_of(run, name));
    if (found != reasons_.end()) return &found->second;
  }
  return nullptr;
}

// --- RunSupervisor ---

RunSupervisor::RunSupervisor(PlannedRun run,
                             std::string device_name,
                             double timeout_s,
                             Quarantine& quarantine)
    : run_(std::move(run)),
      device_name_(std::move(device_name)),
      timeout_s_(timeout_s),
      quarantine_(quarantine),
      pending_(run_.cases.begin(), run_.cases.end()) {}

Actions RunSupervisor::begin() {
  start();
  return std::exchange(todo_, {});
}

Actions RunSupervisor::handle(const RunEvent& event, std::int64_t now_ns) {
  if (over()) return {};
  std::visit(Overloaded{[&](const event::CannotStart& refused) {
                          give_up(reason::Told{refused.error}, {attempt_, {}}, true);
                        },
                        [&](const event::Started&) { last_sign_ns_ = now_ns; },
                        [&](const event::Said& said) {
                          last_sign_ns_ = now_ns;
                          take(said.message);
                        },
                        [&](const event::Ended& end) { ended(end, now_ns); },
                        [&](const event::Tick&) { look_for_hang(now_ns); },
                        [&](const event::Killed& kill) { killed(kill.gone, now_ns); },
                        [&](const event::Stopped&) {
                          state_ = State::stopping;
                          todo_.push_back(action::Kill{kWaitWhenStoppedS});
                        }},
             event);
  return std::exchange(todo_, {});
}

/// An attempt at the cases that are pending, without those that are in quarantine.
void RunSupervisor::start() {
  skipped_.clear();
  std::erase_if(pending_, [&](const PlannedCase& planned) {
    const std::string* const reason = quarantine_.find(run_, planned.name);
    if (!reason) return false;
    skipped_.push_back({planned.name, *reason});
    todo_.push_back(action::Advance{planned.seconds});
    return true;
  });
  if (pending_.empty()) {
    // No worker is needed to say so.
    if (!skipped_.empty()) {
      action::Write write{attempt_, {}};
      write_skipped(write);
      write.records.push_back(end_of("ok", ""));
      todo_.push_back(std::move(write));
    }
    return finish();
  }
  state_ = State::working;
  current_.reset();
  sticky_ = false;
  failed_.reset();
  action::Start start{attempt_, {}, skipped_};
  for (const PlannedCase& planned : pending_) start.cases.push_back(planned.name);
  todo_.push_back(std::move(start));
}

void RunSupervisor::next_attempt() {
  ++attempt_;
  start();
}

void RunSupervisor::take(const Message& message) {
  if (const auto* begun = std::get_if<message::CaseBegun>(&message)) {
    const auto planned = std::ranges::find(pending_, begun->case_name, &PlannedCase::name);
    if (planned == pending_.end()) return;
    skipped_.clear();
    current_ = *planned;
    pending_.erase(planned);
  } else if (const auto* end = std::get_if<message::CaseEnded>(&message)) {
    if (!current_) return;
    if (end->status == Status::failed || end->status == Status::invalid) {
      // "invalid:dropped: …" says itself what it is.
      const bool says_itself = end->of_trace && end->status == Status::invalid;
      todo_.push_back(action::Fail{case_line(
          says_itself ? end->reason : fmt::format("{}: {}", name_of(end->status), end->reason))});
    }
    sticky_ = end->sticky;
    todo_.push_back(action::Advance{current_->seconds});
    current_.reset();
  } else if (const auto* failed = std::get_if<message::Failed>(&message)) {
    failed_ = *failed;
  }
}

void RunSupervisor::look_for_hang(std::int64_t now_ns) {
  if (state_ != State::working) return;
  const double silent_s = static_cast<double>(now_ns - last_sign_ns_) * 1e-9;
  const double limit_s =
      std::max(timeout_s_, current_ ? kEstimatesUntilHung * current_->seconds : 0);
  if (silent_s <= limit_s) return;
  hang_ = {current_           ? reason::Hung::At::block
           : pending_.empty() ? reason::Hung::At::end
                              : reason::Hung::At::begin,
           limit_s};
  state_ = State::killing_hung;
  todo_.push_back(action::Kill{kWaitForKilledS});
}

void RunSupervisor::ended(const event::Ended& event, std::int64_t now_ns) {
  if (event.how.clean()) {
    if (sticky_) return next_attempt();  // the worker has recorded the case and its own end
    // A library may end a process with 0 at any time.
    if (!current_ && pending_.empty()) return finish();
  }
  if (failed_ && failed_->disk) {
    todo_.push_back(action::EndSession{failed_->error});
    return finish();
  }
  const Reason reason = failed_ ? Reason(reason::Told{failed_->error})
                                : Reason(reason::Ended{event.how, event.output});
  if (!current_) return ended_between_cases(reason, now_ns);
  action::Write write{attempt_, {}};
  fail_case(reason, "worker-crashed", write, now_ns);
  write.records.push_back(end_of("failed", text_of(reason)));
  todo_.push_back(std::move(write));
  next_attempt();
}

void RunSupervisor::killed(bool gone, std::int64_t now_ns) {
  if (state_ == State::stopping) {
    if (!gone) {
      ++attempt_;
      todo_.push_back(action::Abandon{});
    }
    todo_.push_back(action::Write{attempt_, {end_of("stopped", "the session was stopped")}});
    return finish();
  }
  if (!gone) return abandon(now_ns);
  if (!current_) {
    // What keeps a worker from beginning keeps the next one too, and each costs a time-out.
    if (!sticky_ && !pending_.empty()) quarantine_.add_all(run_, hang_);
    return ended_between_cases(hang_, now_ns);
  }
  action::Write write{attempt_, {}};
  fail_case(hang_, "worker-hung", write, now_ns);
  write.records.push_back(end_of("failed", text_of(hang_)));
  todo_.push_back(std::move(write));
  next_attempt();
}

/// Whatever still holds the process may write to its file; the rest of the run's story goes to that
/// of the next attempt.
void RunSupervisor::abandon(std::int64_t now_ns) {
  ++attempt_;
  todo_.push_back(action::Abandon{});
  todo_.push_back(action::GiveUpDevice{text_of(reason::CannotBeKilled{})});
  action::Write write{attempt_, {}};
  if (current_) {
    fail_case(hang_, "worker-hung", write, now_ns);
  } else if (pending_.empty() && !sticky_) {
    return ended_badly(hang_, now_ns);
  }
  give_up(reason::CannotBeKilled{}, std::move(write), false);
}

/// The case that ran has failed with its worker.
void RunSupervisor::fail_case(const Reason& reason,
                              const char* event,
                              action::Write& write,
                              std::int64_t now_ns) {
  EventRecord record = event_of(event, reason, now_ns);
  record.case_name = current_->name;
  write.records.push_back(std::move(record));
  write.records.push_back(summary_of(current_->name, Status::failed, text_of(reason)));
  quarantine_.add(run_, current_->name, reason);
  todo_.push_back(action::Fail{case_line("failed: " + text_of(reason))});
  todo_.push_back(action::Advance{current_->seconds});
  current_.reset();
}

/// The worker is gone, and no case was running: after a sticky error, while it put things away, or
/// before it began. Nothing that was measured is in doubt.
void RunSupervisor::ended_between_cases(const Reason& reason, std::int64_t now_ns) {
  if (sticky_) return next_attempt();
  if (!pending_.empty()) return give_up(reason, {attempt_, {}}, true);
  ended_badly(reason, now_ns);
}

void RunSupervisor::ended_badly(const Reason& reason, std::int64_t now_ns) {
  const std::string text = "after its last case " + text_of(reason);
  todo_.push_back(action::Write{
      attempt_, {event_of("worker-ended-badly", reason, now_ns), end_of("ok", text)}});
  todo_.push_back(action::Say{run_line(text)});
  finish();
}

/// The cases that are left fail together: no worker gets as far as to begin one.
void RunSupervisor::give_up(const Reason& reason, action::Write write, bool say) {
  const std::string text = text_of(reason);
  if (say) todo_.push_back(action::Fail{run_line("not measured: " + text)});
  write_skipped(write);
  for (const PlannedCase& planned : pending_) {
    write.records.push_back(summary_of(planned.name, Status::failed, text));
    todo_.push_back(action::Advance{planned.seconds});
  }
  write.records.push_back(end_of("failed", text));
  todo_.push_back(std::move(write));
  pending_.clear();
  finish();
}

/// What the worker would have recorded.
void RunSupervisor::write_skipped(action::Write& write) {
  for (const SkippedCase& left_out : std::exchange(skipped_, {}))
    write.records.push_back(summary_of(left_out.case_name, Status::skipped, left_out.reason));
}

void RunSupervisor::finish() {
  state_ = State::over;
  todo_.push_back(action::Finish{});
}

/// "NVIDIA A100 (0), traced, launch+trace_level=kernels: launch/null: failed: …"
std::string RunSupervisor::case_line(const std::string& what) const {
  std::string run = device_name_;
  if (run_.arm != Arm::plain) {
    run += fmt::format(", {}", name_of(run_.arm));
    if (!run_.process_config.usual()) run += ", " + run_.process_config.text();
  }
  return fmt::format("{}: {}: {}", run, current_->name, what);
}

/// "NVIDIA A100 (0): launch r1: not measured: …"
std::string RunSupervisor::run_line(const std::string& what) const {
  return fmt::format(
      "{}: {} r{}: {}", device_name_, run_.process_config.text(), run_.replicate, what);
}

}  // namespace launchgap
