// launchgap doctor
#include "harness/doctor/doctor.h"

#include <algorithm>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

#include "harness/cli/command.h"
#include "harness/cli/json_output.h"
#include "harness/cli/mistakes.h"
#include "harness/cli/page.h"
#include "harness/core/output_file.h"
#include "harness/core/printable.h"
#include "harness/core/say.h"
#include "harness/record/schema.h"
#include "harness/summary/fallback.h"

namespace launchgap::cli {
namespace {

using doctor::Diagnosis;

struct DoctorCommandOptions {
  doctor::WhatIf question;
  std::string pid;
  std::vector<std::string> command;
  std::string explain;
  std::string session;
  std::string output;
  bool no_prove = false;
  bool require_gpu = false;
  JsonOutput json;
  bool verbose = false;

  bool asks_what_if() const {
    return !question.framework.empty() || !question.gpus.empty() || !question.driver.empty() ||
           !question.cuda.empty() || !question.cudnn.empty();
  }
};

ExitCode exit_code_of(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (finding.severity <= Severity::distorts) return ExitCode::failed;
  }
  return ExitCode::done;
}

constexpr std::size_t kNoLimit = std::string::npos;

/// What the system, its libraries and its users put into an answer is shown, and does nothing.
Json fit_to_show(const Json& json) {
  if (json.is_string()) return printable(json.get_ref<const std::string&>(), kNoLimit);
  if (!json.is_structured()) return json;
  Json fit = json.is_array() ? Json::array() : Json::object();
  for (const auto& [key, value] : json.items()) {
    json.is_array() ? fit.push_back(fit_to_show(value))
                    : void(fit[printable(key, kNoLimit)] = fit_to_show(value));
  }
  return fit;
}

/// Where an answer goes: to a file, or to a stream that is a terminal or not.
class Answers {
 public:
  Answers(const DoctorCommandOptions& options, std::FILE* stream)
      : options_(options), stream_(stream) {}

  /// Throws Error if there is a file that could not be written.
  void check() const {
    if (!options_.output.empty()) check_output_place(options_.output);
  }
  void write(const Diagnosis& diagnosis) const {
    options_.json.asked() ? write(diagnosis.json) : put(diagnosis.text(style()));
  }
  void write(const std::string& text) const { put(text); }
  void write(const Json& content) const { write_own(fit_to_show(content)); }
  /// What is launchgap's own text, line ends included.
  void write_own(const Json& content) const {
    Json json = new_record("doctor");
    json.update(content);
    put(text_of_json(json, 1) + "\n");
  }

 private:
  bool colour() const {
    const char* const terminal = std::getenv("TERM");
    return options_.output.empty() && isatty(fileno(stream_)) == 1 && !std::getenv("NO_COLOR") &&
           std::string_view(terminal && *terminal ? terminal : "") != "dumb";
  }
  /// The terminal's width; 100 where there is none.
  TextStyle style() const {
    constexpr std::size_t kNarrowest = 40, kWidest = 100;
    TextStyle style{.colour = colour(), .verbose = options_.verbose, .width = kWidest};
    winsize size{};
    if (options_.output.empty() && ioctl(fileno(stream_), TIOCGWINSZ, &size) == 0 &&
        size.ws_col != 0)
      style.width = std::clamp<std::size_t>(size.ws_col, kNarrowest, kWidest);
    return style;
  }
  void put(const std::string& text) const {
    if (!options_.output.empty()) {
      write_file(options_.output, printable_lines(text));
    } else if (stream_ == stdout) {
      answer_text(text, colour());
    } else {
      say_raw(printable_lines(text, colour()));
    }
  }

  const DoctorCommandOptions& options_;
  std::FILE* stream_;
};

ExitCode diagnose_machine(const DoctorCommandOptions& options) {
  const Diagnosis diagnosis =
      doctor::diagnose_machine({.prove = !options.no_prove, .python_packages = true});
  Answers(options, stdout).write(diagnosis);
  if (options.require_gpu && !diagnosis.any_gpu_usable) return ExitCode::no_gpu;
  return exit_code_of(diagnosis.findings);
}

ExitCode answer_what_if(const DoctorCommandOptions& options) {
  const Diagnosis diagnosis = doctor::answer_what_if(options.question);
  Answers(options, stdout).write(diagnosis);
  if (options.require_gpu && !options.question.framework.empty() && !diagnosis.any_gpu_usable)
    return ExitCode::no_gpu;
  return exit_code_of(diagnosis.findings);
}

ExitCode look_at_pid(const DoctorCommandOptions& options) {
  const Diagnosis diagnosis = doctor::diagnose_process(options.pid);
  Answers(options, stdout).write(diagnosis);
  return exit_code_of(diagnosis.findings);
}

/// The program has standard output to itself, and its exit code is the doctor's: what goes wrong
/// after its end does not change that.
ExitCode watch(const DoctorCommandOptions& options) {
  const Answers answers(options, stderr);
  answers.check();
  const doctor::WatchedProgram watched = doctor::watch(options.command);
  if (!watched.problem.empty()) say("launchgap: {}", watched.problem);
  try {
    if (watched.diagnosis) answers.write(*watched.diagnosis);
  } catch (const std::exception& error) {
    say("launchgap: {}", error.what());
  }
  return static_cast<ExitCode>(watched.exit_code);
}

ExitCode explain(const DoctorCommandOptions& options) {
  const std::string page = doctor::explain(options.explain);
  const Answers answers(options, stdout);
  if (options.json.asked()) {
    answers.write_own({{"code", options.explain}, {"page", page}});
  } else {
    answers.write(page);
  }
  return ExitCode::done;
}

/// What falling back to the CPU costs, as a session measured it.
ExitCode report_cost(const DoctorCommandOptions& options) {
  const Summarised summarised(options.session);
  const std::vector<FallbackCost> costs = fallback_costs(summarised.session, summarised.rows);
  if (costs.empty()) {
    throw Error(
        "{} has no case that both the host and a GPU computed: `launchgap run --devices all` does",
        options.session);
  }
  const Answers answers(options, stdout);
  if (options.json.asked()) {
    Json json;
    json["fallback"] = Json::array();
    for (const FallbackCost& cost : costs) {
      json["fallback"].push_back({{"device", cost.device},
                                  {"case", cost.name.text()},
                                  {"gpu_ns", cost.gpu_ns},
                                  {"host_ns", cost.host_ns},
                                  {"ratio", cost.ratio()}});
    }
    answers.write(json);
    return ExitCode::done;
  }
  std::string text;
  for (const Finding& finding : fallback_findings(summarised.session, costs))
    text += finding.sentence + '\n';
  answers.write(text);
  return ExitCode::done;
}

/// Questions of different kinds cannot be asked at once.
ExitCode answer_doctor(const DoctorCommandOptions& options) {
  const int kinds = !options.explain.empty() + !options.session.empty() + !options.pid.empty() +
                    !options.command.empty() + options.asks_what_if();
  if (kinds > 1) {
    throw UsageError(
        "doctor: --explain, --session, --pid, a command after `--`, and --for with --gpu, "
        "--driver, --cuda and --cudnn are five questions: ask one at a time");
  }
  if (kinds == 1 && (options.no_prove || (options.require_gpu && !options.asks_what_if())))
    throw UsageError("doctor: --require-gpu and --no-prove are about the machine as a whole");
  if (!options.json.file().empty()) {
    if (!options.output.empty()) throw UsageError("doctor: name one file, by --json or by -o");
    DoctorCommandOptions to_file = options;
    to_file.output = std::exchange(to_file.json, JsonOutput::to_standard_output()).file();
    return answer_doctor(to_file);
  }
  if (!options.explain.empty()) return explain(options);
  if (!options.session.empty()) return report_cost(options);
  if (!options.pid.empty()) return look_at_pid(options);
  if (!options.command.empty()) return watch(options);
  if (options.asks_what_if()) return answer_what_if(options);
  return diagnose_machine(options);
}

}  // namespace

void add_doctor(CLI::App& app, Action& action, const std::vector<std::string>& command_line) {
  CLI::App* const command = app.add_subcommand(
      "doctor", "Say which GPUs can be used, for what, and if not, why not and what to do");
  auto options = std::make_shared<DoctorCommandOptions>();
  doctor::WhatIf& question = options->question;
  command->add_option("--for",
                      question.framework,
                      "Would this framework use the GPUs? tensorflow==2.4.0, torch==2.3+cu121, "
                      "'torch>=2.0'; torch alone is what the active Python has");
  command->add_option("--gpu",
                      question.gpus,
                      "As if this GPU were in the machine: a name (K40m), a capability (3.5) or a "
                      "PCI id (10de:1023); several are possible");
  command->add_option(
      "--driver", question.driver, "As if this driver were installed: 470.256, none");
  command->add_option("--cuda", question.cuda, "As if this CUDA toolkit were installed: 11.1");
  command->add_option("--cudnn", question.cudnn, "As if this cuDNN were installed: 8.0.5");
  command->add_option("--pid", options->pid, "Is this running program on the GPU?");
  CLI::Option* const words =
      command->add_option("command",
                          options->command,
                          "Start this program, watch it, and say whether it was on the GPU; its "
                          "output and exit code are its own. Put -- in front");
  command->add_option("--explain", options->explain, "The page of a finding's code");
  command->add_option("--session",
                      options->session,
                      "How many times slower the host was than each GPU in this session");
  command->add_flag("--no-prove", options->no_prove, "Only look; run nothing on the GPUs");
  command->add_flag("--require-gpu", options->require_gpu, "Exit with 77 if no GPU can be used");
  options->json.add_option(*command, "The answer");
  command->add_option("-o,--output", options->output, "Write the answer to this file");
  command->add_flag("-v,--verbose", options->verbose, "All of every note");
  command->footer(
      "Examples: launchgap doctor\n"
      "          launchgap doctor --for tensorflow==2.4.0\n"
      "          launchgap doctor --for torch==2.3+cu121 --gpu K80 --driver 470.256.02\n"
      "          launchgap doctor -- python train.py --epochs 1\n"
      "Exit codes: 0 nothing is wrong, 3 something prevents or distorts measurement, 77 no GPU and "
      "--require-gpu; with a command, its own.");
  const CLI::Validator not_empty(
      [](const std::string& value) { return value.empty() ? "it needs a value" : ""; }, "");
  for (CLI::Option* option : command->get_options()) {
    if (option->get_items_expected_max() > 0 && !option->get_positional()) option->check(not_empty);
  }
  command->callback([options, words, &action, command_line] {
    if (words->count() > 0) {
      options->command = programs_words(command_line);
      if (options->command.empty())
        throw UsageError(
            "doctor: put `--` in front of the command to watch: launchgap doctor -- python "
            "train.py");
    }
    action = [options] { return answer_doctor(*options); };
  });
}

}  // namespace launchgap::cli
