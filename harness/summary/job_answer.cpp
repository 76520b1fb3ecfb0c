#include "harness/summary/job_answer.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/record/finding_json.h"
#include "harness/summary/causes.h"

namespace launchgap {
namespace {

constexpr JobVerdictInfo kVerdicts[] = {
    {"device-bound", "The GPU is idle for at most 20 % of the time: it is what the job waits for."},
    {"launch-bound",
     "Half of the idle time or more lies between a launch call and the start of its work."},
    {"wait-bound",
     "Half of the idle time or more: the thread that launches waits for the GPU itself."},
    {"allocation-bound",
     "Half of the idle time or more: the thread that launches allocates or frees memory."},
    {"call-bound",
     "Half of the idle time or more: the thread that launches is in other calls of CUDA."},
    {"program-bound", "Half of the idle time or more: the program is outside of CUDA."},
    {"held up",
     "Half of the idle time or more: work is queued and waits for something else, as another "
     "stream, a copy or another GPU."},
    {"mixed", "The GPU is idle for more than 20 % of the time, and no cause has half of it."},
    {"not known",
     "The recording lacks kernels: of 1 % or more of its launches or of its time, what the GPU did "
     "is not known. Nothing is said that rests on idle time."},
    {"clocks disagree", "No time reaches from the host's clock to the GPU's."},
    {"no kernels", "It has calls or copies only: whatever else the GPU did is not known."},
    {"too short",
     "The GPU ran one kernel: there is no time between two in which it could be idle."},
    {"no launches", "It has no launch calls: nothing tells when its work was launched."},
    {"allocations only", "It has allocations, and nothing of launches."},
};

struct IdleKind {
  const char* metric;
  JobVerdict verdict;
  const char* words;
};
constexpr IdleKind kIdleKinds[] = {
    {"idle_queued_ns", JobVerdict::held_up, "with work queued that waits for something else"},
    {"idle_launch_ns", JobVerdict::launch_bound, "between a launch call and the start of its work"},
    {"idle_waiting_ns", JobVerdict::wait_bound, "while the thread that launches waits for the GPU"},
    {"idle_allocating_ns",
     JobVerdict::allocation_bound,
     "while the thread that launches allocates or frees memory"},
    {"idle_calling_ns",
     JobVerdict::call_bound,
     "while the thread that launches is in other calls of CUDA"},
    {"idle_program_ns", JobVerdict::program_bound, "while the program is outside of CUDA"},
    {"idle_unknown_ns", JobVerdict::not_known, "before work that nobody launched in the recording"},
};

/// What the recording has beside the time in which the GPU works at all is said first, as idle time
/// is a share of that time alone.
std::string the_gpu(const RecordedProcess& process) {
  constexpr double kMostOf = 0.9;
  const auto extent = static_cast<double>(process.job.extent_ns.value_or(0));
  const double length = process.length_ns.value_or(0);
  if (length <= 0 || length >= kMostOf * extent) return "The GPU";
  return fmt::format("From its first work to its last, {} of the {} recorded, the GPU",
                     cause_text::time(length),
                     cause_text::time(extent));
}

void judge_idleness(const RecordedProcess& process, JobAnswer& answer) {
  constexpr double kBusyEnough = 0.2, kHalf = 0.5;
  const double idle = *process.idle_share;
  if (idle <= 0 && process.counts.kernels == 1) {
    answer.verdict = JobVerdict::too_short;
    answer.sentence = fmt::format(
        "The GPU ran one kernel, for {}: there is no time between two in which it could be idle.",
        cause_text::time(process.length_ns.value_or(0)));
    return;
  }
  answer.idle_share = idle;
  const std::string gpu = the_gpu(process);
  if (idle <= kBusyEnough) {
    answer.verdict = JobVerdict::device_bound;
    answer.sentence = fmt::format(
        "{} works {} of the time and is idle {}.", gpu, percent_text(1 - idle), percent_text(idle));
    return;
  }
  const auto share_of = [&](const IdleKind& kind) {
    return process.share(process.of_job(kind.metric).value_or(0));
  };
  const IdleKind& most = *std::ranges::max_element(kIdleKinds, {}, share_of);
  const double most_share = share_of(most);
  if (most_share == 0) {
    answer.verdict = JobVerdict::mixed;
    answer.sentence = fmt::format(
        "{} is idle {} of the time, and nothing tells for what.", gpu, percent_text(idle));
    return;
  }
  const bool mixed = most_share < kHalf * idle;
  // What the recorder may have left out of a graph waits for nothing.
  const bool of_graphs =
      most.verdict == JobVerdict::held_up &&
      process.share(static_cast<double>(process.job.queued_graph_ns)) >= kHalf * most_share;
  const char* const words = of_graphs ? "with work queued, mostly of graphs" : most.words;
  answer.verdict = mixed ? JobVerdict::mixed : most.verdict;
  answer.sentence = fmt::format("{} is idle {} of the time{}, {} {}.",
                                gpu,
                                percent_text(idle),
                                mixed ? " for several causes" : "",
                                percent_text(most_share),
                                words);
}

/// Then the times of all calls together say nothing of the recording's length.
bool in_several_threads(const LaunchTail& tail) {
  return tail.covered_ns > 0 && tail.covered_ns < tail.time_ns;
}

void judge(const RecordedProcess& process, JobAnswer& answer) {
  const auto is_zero = [](const std::optional<std::int64_t>& n) { return n.value_or(0) == 0; };
  const bool has_launches = process.job.tail || !is_zero(process.counts.launches);
  if (!has_launches && is_zero(process.counts.kernels) && process.recording.allocations) {
    answer.verdict = JobVerdict::allocations_only;
    answer.sentence =
        "The recording has allocations and no launches: `launchgap replay` plays them.";
  } else if (process.has_job && !has_launches && is_zero(process.counts.kernels) &&
             !process.idle_share) {
    answer.verdict = JobVerdict::no_kernels;
    answer.sentence =
        "The recording has copies and no kernels: whether the GPU was idle is not known.";
  } else if (!has_launches) {
    answer.verdict = JobVerdict::no_launches;
    answer.sentence =
        is_zero(process.counts.kernels)
            ? "It launches nothing: all that its GPU does is copies and fills."
            : "Nothing tells when its kernels were launched, so idle time has no cause.";
    answer.idle_share = process.idle_share;
  } else if (is_zero(process.counts.kernels)) {
    answer.verdict = JobVerdict::no_kernels;
    answer.sentence =
        "The recording has calls and no kernels: whether the GPU was idle is not known.";
  } else if (!process.recording.clock_problem.empty()) {
    answer.verdict = JobVerdict::clocks_disagree;
    answer.sentence = fmt::format("Why the GPU is idle is not known: {}.",
                                  printable(process.recording.clock_problem, 150));
    if (process.knows_idleness()) answer.idle_share = process.idle_share;
  } else if (!process.knows_idleness()) {
    answer.sentence =
        fmt::format("{}, so idle time is not known. Record a shorter time, or with larger buffers.",
                    process.unknown_launches() >= process.unknown_share()
                        ? fmt::format("The kernels of {} of the launches are lost or impossible",
                                      percent_text(process.unknown_launches()))
                        : fmt::format("Kernels are lost or impossible around {} of the time",
                                      percent_text(process.unknown_share())));
  } else if (!process.idle_share) {
    answer.sentence = "No launch was found together with its kernel, so idle time is not known.";
  } else {
    judge_idleness(process, answer);
  }
}

}  // namespace

std::span<const JobVerdictInfo> job_verdicts() {
  return kVerdicts;
}

std::string_view name_of(JobVerdict verdict) {
  return kVerdicts[static_cast<std::size_t>(verdict)].name;
}

std::string tail_text(const LaunchTail& tail) {
  std::vector<const TailPart*> parts;
  for (const TailPart& part : tail.parts) parts.push_back(&part);
  std::ranges::stable_sort(parts, {}, [](const TailPart* part) { return -part->time_ns; });
  std::vector<std::string> texts;
  for (const TailPart* const part : parts) {
    const auto info = std::ranges::find(kTailCauses, part->cause, &TailCauseInfo::name);
    if (info == kTailCauses.end()) continue;
    texts.push_back(fmt::format("{} {}{}",
                                info->in_words,
                                percent_text(tail.share(*part)),
                                info->name == name_of(TailCause::usual)
                                    ? ""
                                    : fmt::format(" ({})", cause_text::grouped(part->launches))));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::vector<std::string_view> idle_metrics() {
  std::vector<std::string_view> metrics;
  for (const IdleKind& kind : kIdleKinds) metrics.emplace_back(kind.metric);
  return metrics;
}

JobAnswer answer_of(const RecordedProcess& process) {
  JobAnswer answer;
  judge(process, answer);
  if (process.job.all_launches || process.counts.launches)
    answer.unknown_share = process.unknown_share();
  answer.launch_share = process.launch_share();
  if (!process.job.tail) return answer;
  const LaunchTail& tail = *process.job.tail;
  const std::string share = percent_text(*answer.launch_share);
  answer.launches = fmt::format(
      "{} {} {}, {} (a call: p50 {}{}): {}.",
      counted(cause_text::grouped(tail.launches), "launch call"),
      tail.launches == 1 ? "takes" : "take",
      cause_text::time(static_cast<double>(tail.time_ns)),
      in_several_threads(tail) ? fmt::format("and one or more go on for {} of the recording", share)
                               : fmt::format("{} of the recording", share),
      cause_text::time(tail.p50_ns),
      tail.p99_ns > 0 ? fmt::format(", p99 {}", cause_text::time(tail.p99_ns)) : "",
      tail_text(tail));
  return answer;
}

namespace {

/// Lines that fit, each broken at `width`.
class Lines {
 public:
  Lines(std::size_t most, std::size_t width) : left_(most), width_(width) {}

  /// False, and nothing is added, where it does not fit beside what is kept free.
  bool add(const std::string& head, const std::string& text) {
    const std::string own = laid_out(head, text);
    if (lines_of(own) + kept_free_ > left_) return false;
    left_ -= lines_of(own);
    text_ += own;
    return true;
  }
  std::size_t left() const { return left_; }
  /// For what comes later, until another call.
  void keep_free(std::size_t lines) { kept_free_ = lines; }
  std::size_t lines_of(const std::string& head, const std::string& text) const {
    return lines_of(laid_out(head, text));
  }
  std::string take() { return std::move(text_); }

 private:
  static std::size_t lines_of(const std::string& text) {
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  }
  std::string laid_out(const std::string& head, const std::string& text) const {
    return head + wrapped(text, head.size(), width_) + "\n";
  }

  std::size_t left_, width_, kept_free_ = 0;
  std::string text_;
};

/// One process as one paragraph, for a job of several.
std::string short_text(const RecordedProcess& process, const JobAnswer& answer) {
  std::string text = fmt::format("{}: {}", process.where(), name_of(answer.verdict));
  if (answer.idle_share) text += fmt::format(", GPU idle {}", percent_text(*answer.idle_share));
  if (!process.job.tail) return text + ".";
  const LaunchTail& tail = *process.job.tail;
  const std::string share = percent_text(*answer.launch_share);
  return text + fmt::format("; launch calls {}, {}: {}.",
                            cause_text::time(static_cast<double>(tail.time_ns)),
                            in_several_threads(tail)
                                ? fmt::format("one or more for {} of the time", share)
                                : fmt::format("{} of the time", share),
                            tail_text(tail));
}

void add_processes(const std::vector<RecordedProcess>& processes, Lines& lines) {
  constexpr std::size_t kMostShown = 3;
  if (processes.size() == 1) {
    const RecordedProcess& process = processes.front();
    const JobAnswer answer = answer_of(process);
    lines.add("",
              fmt::format("{}: {}. {}",
                          printable(process.recording.file, 60),
                          name_of(answer.verdict),
                          answer.sentence));
    if (!answer.launches.empty()) lines.add("", answer.launches);
    return;
  }
  std::vector<std::pair<const RecordedProcess*, JobAnswer>> answers;
  for (const RecordedProcess& process : processes)
    answers.emplace_back(&process, answer_of(process));
  std::ranges::stable_sort(answers, {}, [](const auto& own) { return own.first->where(); });
  // The most idle first, where not all are shown.
  if (answers.size() > kMostShown) {
    std::ranges::stable_sort(
        answers, {}, [](const auto& own) { return -own.second.idle_share.value_or(-1); });
  }
  std::size_t shown = 0;
  while (shown < std::min(kMostShown, answers.size()) &&
         lines.add("", short_text(*answers[shown].first, answers[shown].second)))
    ++shown;
  if (answers.size() > shown)
    lines.add("", fmt::format("and {} more: recordings.csv.", answers.size() - shown));
}

/// What is said where there is nothing to act on, with the figures of the most idle process. A GPU
/// that idles is grave, so nothing is said of it where some other finding is.
std::string not_grave_text(const std::vector<RecordedProcess>& processes, bool nothing_found) {
  constexpr double kBusyEnough = 0.2;
  std::optional<JobAnswer> most;
  bool unknown = false;
  for (const RecordedProcess& process : processes) {
    if (!process.has_job) continue;
    JobAnswer answer = answer_of(process);
    unknown = unknown || !process.knows_idleness();
    if (answer.idle_share && (!most || *answer.idle_share > *most->idle_share))
      most = std::move(answer);
  }
  if (unknown) return "No cause is told that rests on idle time, which is not known.";
  if (!most || (*most->idle_share > kBusyEnough && !nothing_found)) return "";
  const std::string figures =
      most->launch_share
          ? fmt::format("the GPU is idle {} and launch calls take {} of the time",
                        percent_text(*most->idle_share),
                        percent_text(*most->launch_share))
          : fmt::format("the GPU is idle {} of the time", percent_text(*most->idle_share));
  return *most->idle_share <= kBusyEnough
             ? fmt::format("Nothing grave: {}{}.", figures, processes.size() > 1 ? " at most" : "")
             : fmt::format("No cause of the idle time shows: {}.", figures);
}

/// The places of the gravest; the last is for who of several ranks is late, where that would be
/// left out.
std::vector<std::size_t> first_told(const std::vector<Finding>& found, std::size_t most) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < std::min(most, found.size()); ++i) places.push_back(i);
  const auto late = std::ranges::find_if(found, tells_who_is_late);
  const auto place = static_cast<std::size_t>(late - found.begin());
  if (late != found.end() && place >= places.size()) places.back() = place;
  return places;
}

}  // namespace

std::string job_text(const SessionData& session, std::size_t most_lines, std::size_t width) {
  constexpr std::size_t kMostCauses = 3;
  const std::vector<RecordedProcess> processes = recorded_processes(session);
  const std::vector<Finding> found = causes(session);
  std::vector<std::pair<std::string, std::string>> told;  // severity and sentence
  if (found.empty() || found.front().severity > Severity::act) {
    const std::string text = not_grave_text(processes, found.empty());
    if (!text.empty()) told.emplace_back("", text);
  }
  for (const std::size_t i : first_told(found, kMostCauses)) {
    const Finding& cause = found[i];
    const bool named = processes.size() == 1 || cause.sentence.starts_with(cause.subject);
    const std::string where = named ? "" : cause.subject + ": ";
    told.emplace_back(fmt::format("{:<5}", name_of(cause.severity)) + " ",
                      fmt::format("{}{} [{}]", where, cause.sentence, cause.code));
  }
  Lines lines(most_lines, width);
  // The gravest has room, however many processes there are.
  if (!told.empty()) lines.keep_free(1 + lines.lines_of(told.front().first, told.front().second));
  add_processes(processes, lines);
  std::size_t left_out = found.size(), needed = 0;
  for (const auto& [head, text] : told) needed += lines.lines_of(head, text);
  // One says how many are left out, where some are.
  lines.keep_free(left_out > kMostCauses || needed > lines.left() ? 1 : 0);
  for (const auto& [head, text] : told) {
    if (lines.add(head, text) && !head.empty()) --left_out;
  }
  lines.keep_free(0);
  if (left_out > 0) lines.add("", fmt::format("and {} more: findings.csv.", left_out));
  return lines.take();
}

Json job_json(const SessionData& session) {
  Json all{{"schema", "launchgap/1"}, {"session", session.id}};
  all["jobs"] = Json::array();
  for (const RecordedProcess& process : recorded_processes(session)) {
    const JobAnswer answer = answer_of(process);
    Json own{{"file", process.recording.file},
             {"device", process.info.device},
             {"replicate", process.info.replicate},
             {"verdict", name_of(answer.verdict)},
             {"sentence", answer.sentence}};
    const auto put = [&](const char* key, const auto& value) {
      if (value) own[key] = *value;
    };
    put("pid", process.recording.pid);
    put("rank", process.recording.rank);
    put("gpu_idle_share", answer.idle_share);
    put("unknown_share", answer.unknown_share);
    put("launch_share", answer.launch_share);
    if (process.job.tail) {
      own["launches"] = process.job.tail->launches;
      own["launch_calls_ns"] = process.job.tail->time_ns;
      Json tail = Json::array();
      for (const TailPart& part : process.job.tail->parts)
        tail.push_back({{"cause", part.cause},
                        {"launches", part.launches},
                        {"time_ns", part.time_ns},
                        {"share", process.job.tail->share(part)}});
      own["tail"] = std::move(tail);
    }
    own["remarks"] = process.recording.remarks;
    all["jobs"].push_back(std::move(own));
  }
  all["findings"] = Json::array();
  for (const Finding& finding : causes(session)) all["findings"].push_back(to_json(finding));
  return all;
}

}  // namespace launchgap
