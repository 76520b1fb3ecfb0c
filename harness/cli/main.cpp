#include <algorithm>
#include <csignal>
#include <cstring>
#include <memory>
#include <new>
#include <sstream>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/mistakes.h"
#include "harness/core/build_info.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"

namespace launchgap::cli {
namespace {

constexpr std::size_t kIndent = 2;

/// What is explained on the left, the explanation beside it, or below where there is little room.
std::string entry(const std::string& name, const std::string& explanation) {
  constexpr std::size_t kColumn = 28, kNarrow = 80, kBelow = 6;
  const std::string head = std::string(kIndent, ' ') + name;
  if (explanation.empty()) return head + "\n";
  if (text_columns() < kNarrow)
    return fmt::format("{}\n{}{}\n", head, std::string(kBelow, ' '), wrapped(explanation, kBelow));
  const std::string between = head.size() + kIndent <= kColumn
                                  ? std::string(kColumn - head.size(), ' ')
                                  : "\n" + std::string(kColumn, ' ');
  return head + between + wrapped(explanation, kColumn) + "\n";
}

/// Each line by itself, what does not fit indented.
std::string lines_wrapped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
    out += std::string(line.substr(0, first)) + wrapped(line.substr(first), first) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// CLI11's help, broken into lines that the terminal has room for.
class HelpText : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    return lines_wrapped(app->get_description());
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    while (usage.ends_with('\n')) usage.pop_back();
    return lines_wrapped(usage);
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return entry(make_option_name(option, is_positional) + make_option_opts(option),
                 make_option_desc(option));
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_name(), command->get_description());
  }

  std::string make_footer(const CLI::App* app) const override {
    return lines_wrapped(app->get_footer());
  }
};

constexpr const char* kFooter =
    "Example: launchgap run --profile quick -o results/today && launchgap report results/today\n"
    "Exit codes: 0 done, 2 wrong usage, 3 something failed or is invalid, 4 something became "
    "slower, 5 stopped early (what "
    "was measured is "
    "kept), 77 a GPU was asked for and there is none.";

int report_error(const Error& error) {
  say("launchgap: {}", error.what());
  return static_cast<int>(error.exit_code());
}

/// The exit code, now that the answer is to have arrived: one that was lost is a failure.
int ended_with(ExitCode code) {
  if (const int lost = lost_answer(); lost != 0) {
    say("launchgap: the answer cannot be written: {}", std::strerror(lost));
    if (code == ExitCode::done) code = ExitCode::failed;
  }
  return static_cast<int>(code);
}

/// Ends as the signal ends whoever does not watch for it.
int end_by_signal() {
  std::signal(stop_signal, SIG_DFL);
  std::raise(stop_signal);
  return static_cast<int>(ExitCode::stopped_early);
}

/// The words of a command line, as options: `launchgap` alone asks for help, and so do `help` and
/// `help COMMAND`; `version` asks for the version.
std::vector<std::string> asked_words(std::vector<std::string> words) {
  if (words.empty() || words == std::vector<std::string>{"help"}) return {"--help"};
  if (words == std::vector<std::string>{"version"}) return {"--version"};
  if (words.size() == 2 && words[0] == "help") return {words[1], "--help"};
  return words;
}

int main(int argc, char** argv) {
  keep_standard_descriptors();
  ignore_broken_pipes();
  std::signal(SIGCHLD,
              SIG_DFL);  // a caller that ignores it would keep us from learning how workers end
  if (argc > 1 && std::strcmp(argv[1], "worker") == 0) {
    return ended_with(worker_main(argc - 1, argv + 1));
  }
  const std::vector<std::string> command_line(argv, argv + argc);
  CLI::App app(
      "What does this GPU really do with the work that a program launches on it, why is it not the "
      "same every "
      "time, and how does it compare with the generation before?",
      "launchgap");
  app.formatter(std::make_shared<HelpText>());
  app.footer(kFooter);
  app.set_version_flag("-V,--version", fmt::format("launchgap {} ({})", kVersion, kGitRevision));
  app.require_subcommand(1);
  Action action;
  add_doctor(app, action, command_line);
  add_run(app, action, command_line);
  add_record(app, action, command_line);
  add_import(app, action, command_line);
  add_list(app, action);
  add_report(app, action);
  add_merge(app, action);
  add_fleet(app, action);
  add_health(app, action);
  add_export(app, action);
  add_investigate(app, action);
  add_join(app, action);
  add_compare(app, action);
  add_check(app, action);
  add_history(app, action);
  add_replay(app, action, command_line);
  add_generate(app, action);
  add_selftest(app, action);
  add_completion(app, action);
  add_man(app, action);
  app.add_subcommand(
      "worker",
      "The cases of one device as a plain Google Benchmark program; `run` starts workers itself");
  std::vector<std::string> words = asked_words(own_words({argv + 1, argv + argc}));
  const auto is_first_word = [&](CLI::App* command) { return command->get_name() == words[0]; };
  if (words[0].empty() || (words[0][0] != '-' && app.get_subcommands(is_first_word).empty()))
    throw UsageError(no_command_text(app, words[0]));
  try {
    std::ranges::reverse(words);
    app.parse(words);
  } catch (const CLI::Success& success) {  // --help, --version
    std::ostringstream help;
    app.exit(success, help, help);
    answer_text(help.str());
    return ended_with(ExitCode::done);
  } catch (const CLI::ParseError& error) {
    say("launchgap: {}", mistake_text(app, error));
    return static_cast<int>(ExitCode::wrong_usage);
  }
  return ended_with(action());
}

}  // namespace
}  // namespace launchgap::cli

int main(int argc, char** argv) {
  try {
    return launchgap::cli::main(argc, argv);
  } catch (const launchgap::Stopped&) {
    return launchgap::cli::end_by_signal();
  } catch (const launchgap::Error& error) {
    return launchgap::cli::report_error(error);
  } catch (const std::bad_alloc&) {
    launchgap::say_line("launchgap: there is no memory left");
    return static_cast<int>(launchgap::ExitCode::failed);
  } catch (const std::exception& error) {
    launchgap::say("launchgap: {}", error.what());
    return static_cast<int>(launchgap::ExitCode::failed);
  }
}
