// Answers for a terminal and as JSON.
#include "harness/core/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/doctor/frameworks/frameworks.h"
#include "harness/doctor/printable.h"
#include "harness/doctor/screen.h"

namespace launchgap::doctor {
namespace {

std::string verdict_of(Outcome outcome, bool conditional) {
  switch (outcome) {
    case Outcome::works:
      return conditional ? "works, with what it needs" : "works";
    case Outcome::works_after_compiling:
      return "works in principle";
    case Outcome::silent_cpu:
      return "uses the CPU, without an error";
    case Outcome::fails:
      return "fails";
    case Outcome::unknown:
      return "unknown";
  }
  return "";
}

std::string gpu_line(const Answer& answer, const GpuAnswer& gpu) {
  std::string name = printable(gpu.gpu.name, 80);
  if (gpu.gpu.capability) {
    name += fmt::format(" ({}{})",
                        gpu.architecture.empty() ? "" : gpu.architecture + " ",
                        gpu.gpu.capability->text());
  }
  if (answer.subject.empty()) return name + "\n";
  return fmt::format("{} on {}: {}{}{}\n",
                     answer.subject,
                     name,
                     verdict_of(gpu.outcome, gpu.conditional),
                     gpu.reason.empty() ? "" : " – ",
                     gpu.reason);
}

std::string newest_line(const char* label, const NewestBuild& build, std::optional<int> last) {
  std::string line = fmt::format("{}: {}, driver {} or newer{}",
                                 label,
                                 build.text(),
                                 build.driver.minimum.text(),
                                 last ? fmt::format(" up to R{}", *last) : "");
  if (build.compiled_at_start) line += ", compiled by the driver at the first start";
  if (build.cudnn) line += fmt::format(", cuDNN {}", build.cudnn->text());
  if (build.cudnn_knows_gpu.no()) line += " (without code for this GPU)";
  if (build.cudnn && build.cudnn_knows_gpu.truth == Truth::unknown)
    line += " (whether it has code for this GPU is not known)";
  return "  " + wrapped(line, 4) + "\n";
}

std::string newest_lines(const GpuAnswer& gpu) {
  std::string lines;
  for (const Newest& newest : gpu.newest) {
    if (newest.certain)
      lines += newest_line("newest that works", *newest.certain, gpu.last_driver_branch);
    if (newest.with_cudnn)
      lines += newest_line("newest with cuDNN", *newest.with_cudnn, gpu.last_driver_branch);
    if (newest.possible)
      lines += newest_line("perhaps, not confirmed", *newest.possible, gpu.last_driver_branch);
  }
  if (gpu.newest_toolkit)
    lines += fmt::format("  newest CUDA toolkit: {}\n", gpu.newest_toolkit->text());
  if (gpu.last_driver_branch)
    lines += fmt::format("  last driver branch: R{}\n", *gpu.last_driver_branch);
  return lines;
}

std::string needs_table(const Answer& answer) {
  std::vector<std::vector<std::string>> rows = {{"", "needs", "has"}};
  for (const NeedRow& row : answer.needs) rows.push_back({row.what, row.need, row.have});
  return rows.size() > 1 ? table(rows) + "\n" : "";
}

Json maybe_text(const std::optional<Version>& version) {
  return version ? Json(version->text()) : Json();
}

Json to_json(const Verdict& verdict) {
  Json json = {{"is", name_of(verdict.truth)}, {"reason", verdict.reason}};
  if (!verdict.source.empty()) json["source"] = verdict.source;
  if (verdict.recalled) json["confirmed"] = false;
  return json;
}

Json to_json(const NewestBuild& build) {
  return {{"framework", build.framework},
          {"version", build.version.text()},
          {"package", build.package},
          {"cuda", build.cuda.text()},
          {"cudnn", maybe_text(build.cudnn)},
          {"driver_minimum", build.driver.minimum.text()},
          {"driver_bundled", build.driver.bundled.text()},
          {"cudnn_has_code_for_gpu", to_json(build.cudnn_knows_gpu)},
          {"compiled_at_start", build.compiled_at_start},
          {"confirmed", !build.recalled}};
}

Json to_json(const Newest& newest) {
  Json json = Json::object();
  if (newest.certain) json["certain"] = to_json(*newest.certain);
  if (newest.with_cudnn) json["with_cudnn"] = to_json(*newest.with_cudnn);
  if (newest.possible) json["possible"] = to_json(*newest.possible);
  return json;
}

Json to_json(const GpuAnswer& gpu) {
  Json json = {{"name", printable(gpu.gpu.name)},
               {"outcome", name_of(gpu.outcome)},
               {"conditional", gpu.conditional},
               {"reason", gpu.reason}};
  if (!gpu.gpu.id.empty()) json["id"] = printable(gpu.gpu.id);
  if (gpu.gpu.capability) json["compute_capability"] = gpu.gpu.capability->text();
  if (!gpu.architecture.empty()) json["architecture"] = gpu.architecture;
  if (gpu.newest_toolkit) json["newest_toolkit"] = gpu.newest_toolkit->text();
  if (gpu.last_driver_branch) json["last_driver_branch"] = *gpu.last_driver_branch;
  json["newest"] = Json::array();
  for (const Newest& newest : gpu.newest) json["newest"].push_back(to_json(newest));
  return json;
}

Json to_json(const BuildRow& build) {
  Json code = {{"known", !build.code.machine_code.empty()},
               {"compute_capabilities", Json::array()}};
  for (const Capability c : build.code.machine_code)
    code["compute_capabilities"].push_back(c.text());
  if (build.code.at_least) code["at_least"] = build.code.at_least->text();
  if (build.code.ptx_target) code["ptx"] = build.code.ptx_target->text();
  return {{"framework", build.framework},
          {"versions", build.versions.text()},
          {"package", build.package},
          {"cuda", build.cuda.text()},
          {"cudnn", maybe_text(build.cudnn)},
          {"brings_libraries", build.brings_libraries},
          {"code", std::move(code)},
          {"source", build.source.text}};
}

}  // namespace

std::string text(const Answer& answer, bool colour) {
  std::string out;
  for (const GpuAnswer& gpu : answer.gpus) out += gpu_line(answer, gpu) + newest_lines(gpu);
  if (answer.gpus.empty() && !answer.subject.empty()) {
    out += fmt::format(
        "{}: {}\n",
        answer.subject,
        answer.findings.empty() ? "no GPU was asked about" : answer.findings.front().sentence);
  }
  out += "\n" + needs_table(answer);
  if (!answer.loads.empty())
    out += wrapped(fmt::format("opens {}", fmt::join(answer.loads, " ")), 6) + "\n\n";
  for (const std::string& note : answer.notes)
    out += fmt::format("mind: {}\n", wrapped(note, std::string_view("mind: ").size()));
  while (out.ends_with("\n\n")) out.pop_back();
  out += findings_text(answer.findings, colour, true);
  return out;
}

Json to_json(const Answer& answer) {
  Json json = {{"subject", answer.subject}};
  if (answer.build) json["build"] = to_json(*answer.build);
  json["needs"] = Json::array();
  for (const NeedRow& row : answer.needs) {
    json["needs"].push_back(
        {{"what", row.what}, {"need", row.need}, {"have", row.have}, {"met", name_of(row.met)}});
  }
  json["loads"] = answer.loads;
  json["missing"] = answer.missing;
  json["gpus"] = Json::array();
  for (const GpuAnswer& gpu : answer.gpus) json["gpus"].push_back(to_json(gpu));
  json["findings"] = Json::array();
  for (const Finding& finding : answer.findings) json["findings"].push_back(to_json(finding));
  json["notes"] = answer.notes;
  return json;
}

}  // namespace launchgap::doctor
