// regression_probe FORM NAME: prints a sample report as json, junit, markdown, annotations or
// screen.
#include <cstdio>
#include <string>

#include "harness/regression/report.h"
#include "tests/regression/sample_reports.h"

int main(int argc, char** argv) {
  using namespace launchgap::regression;
  if (argc != 3) return 2;
  const std::string form = argv[1];
  try {
    const Report report = sample_report(argv[2]);
    const std::string text = form == "json"          ? report_json(report)
                             : form == "junit"       ? junit_xml(report)
                             : form == "markdown"    ? markdown(report)
                             : form == "annotations" ? github_annotations(report)
                             : form == "screen"      ? screen_text(report)
                                                     : "";
    if (text.empty() && form != "annotations") return 2;
    std::fputs(text.c_str(), stdout);
    return static_cast<int>(report.exit_code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "regression_probe: %s\n", error.what());
    return 2;
  }
}
