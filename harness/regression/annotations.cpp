#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "harness/core/printable.h"
#include "harness/regression/report.h"
#include "harness/regression/report_words.h"

namespace launchgap::regression {
namespace {

/// As GitHub's toolkit does (packages/core/src/command.ts): of properties ':' and ',' too.
std::string escaped(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','))) {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string command(std::string_view kind, std::string_view title, std::string_view text) {
  return fmt::format("::{} title={}::{}\n", kind, escaped(title, true), escaped(text, false));
}

std::string annotation(std::string_view kind, const Result& result) {
  return command(
      kind,
      fmt::format("{}: {} of {}", short_verdict(result), metric_text(result), case_text(result)),
      fmt::format("{}: {}", device_text(result), facts_text(result)));
}

std::string annotation(const Group& group) {
  const Result& slowest = *group.results.front();
  return command("warning",
                 fmt::format("changed with {}", group.what),
                 fmt::format("compared with before: {}; {} of {}, {}: {}",
                             range_text(group),
                             metric_text(slowest),
                             case_text(slowest),
                             device_text(slowest),
                             change_text(slowest)));
}

}  // namespace

std::string github_annotations(const Report& report) {
  std::vector<std::string> lines;
  if (!report.invalid.empty())
    lines.push_back(command("error",
                            report.kind == Kind::pairs ? "launchgap: nothing could be compared"
                                                       : "launchgap: the session is invalid",
                            printable(report.invalid)));
  const std::vector<const Result*> all = found(report);
  const auto worth_an_error = [&](const Result* result) {
    return fails(*result, report.strictness);
  };
  for (const Result* result : report.worst_first()) {
    if (worth_an_error(result)) lines.push_back(annotation("error", *result));
  }
  for (const Group& group : changed(report)) lines.push_back(annotation(group));
  for (const Result* result : all) {
    const bool told = worth_an_error(result) || (result->verdict == Verdict::faster &&
                                                 result->steadiness != Steadiness::erratic);
    if (!told) lines.push_back(annotation("warning", *result));
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), kMostAnnotations); ++i) text += lines[i];
  return text;
}

}  // namespace launchgap::regression
