// launchgap report
#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/page.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/summary/all_tables.h"

namespace launchgap::cli {

void add_report(CLI::App& app, Action& action) {
  struct Options {
    std::vector<std::string> folders;
    std::string output;
  };
  CLI::App* const command =
      app.add_subcommand("report", "Make the page of a session, or compare several on one page");
  auto options = std::make_shared<Options>();
  command
      ->add_option("sessions",
                   options->folders,
                   "Folders of sessions; of several, devices are laid side by side by generation")
      ->required();
  command->add_option(
      "-o,--output",
      options->output,
      "The page; default: report.html in the session's folder, comparison.html here for several");
  command->footer("Example: launchgap report results/k40 results/h200 -o gap.html");
  command->callback([options, &action] {
    action = [options] {
      std::vector<std::unique_ptr<Summarised>> sessions;
      bool whole = true;
      for (const std::string& folder : options->folders) {
        sessions.push_back(std::make_unique<Summarised>(folder));
        for (const std::string& problem : sessions.back()->session.problems) {
          say("launchgap: {}", problem);
          whole = false;
        }
      }
      std::filesystem::path output = options->output;
      if (output.empty()) {
        output = sessions.size() == 1 ? sessions.front()->session.folder / "report.html"
                                      : std::filesystem::path("comparison.html");
      }
      const SignalWatch watch;
      if (sessions.size() == 1 && options->output.empty()) {
        const Summarised& only = *sessions.front();
        write_tables(only.tabled(), TableUse::session, only.session.folder);
      }
      write_page(sessions, output);
      answer("{}\n", output.string());
      return whole ? ExitCode::done : ExitCode::failed;
    };
  });
}

}  // namespace launchgap::cli
