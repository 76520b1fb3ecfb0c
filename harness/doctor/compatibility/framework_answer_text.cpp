// Answers for a terminal and as JSON.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/doctor/compatibility/framework_answer.h"
#include "harness/record/finding_json.h"

namespace launchgap::doctor {
namespace {

/// Whole, where it fits; what is not ASCII takes more bytes than columns.
std::string headline(const std::string& text, std::size_t width) {
  return (text.size() <= width + 2 ? text : wrapped(text, 2, width)) + "\n";
}

/// ", once CUDA 11.0 and a driver 450.51.05 to R470 are installed".
std::string once_text(const GpuAnswer& gpu) {
  if (gpu.once.empty()) return "";
  return fmt::format(
      ", once {} {} installed", list_text(gpu.once), gpu.once.size() == 1 ? "is" : "are");
}

std::string verdict_of(const GpuAnswer& gpu) {
  switch (gpu.outcome) {
    case Outcome::works:
      return gpu.conditional ? "would work" + once_text(gpu) : "works";
    case Outcome::works_after_compiling:
      return "works in principle" + once_text(gpu);
    case Outcome::silent_cpu:
      return "uses the CPU, without an error";
    case Outcome::fails:
      return "fails";
    case Outcome::unknown:
      return "not known";
  }
  return "";
}

/// With why, where it does not simply work.
std::string verdict_and_reason(const GpuAnswer& gpu) {
  if (!gpu.range.empty()) return gpu.range;
  const std::string& reason = gpu.brief.empty() ? gpu.reason : gpu.brief;
  const bool plain = gpu.outcome == Outcome::works || reason.empty();
  return verdict_of(gpu) + (plain ? "" : " – " + reason);
}

std::string name_of_gpu(const GpuAnswer& gpu) {
  std::string name = printable(gpu.gpu.name.empty() ? "GPU" : gpu.gpu.name, 80);
  if (!gpu.gpu.capability) return name;
  return fmt::format("{} ({}{})",
                     name,
                     gpu.architecture.empty() ? "" : gpu.architecture + " ",
                     gpu.gpu.capability->text());
}

/// Lines that are the same are one, with how often it is there: "8 x A100".
template <class LineOf>
std::vector<std::pair<std::size_t, std::string>> counted(const std::vector<GpuAnswer>& gpus,
                                                         LineOf line_of) {
  std::vector<std::pair<std::size_t, std::string>> lines;
  for (const GpuAnswer& gpu : gpus) {
    std::string line = line_of(gpu);
    const auto same = std::ranges::find(lines, line, &std::pair<std::size_t, std::string>::second);
    if (same == lines.end()) {
      lines.emplace_back(1, std::move(line));
    } else {
      ++same->first;
    }
  }
  return lines;
}

/// "tensorflow 2.4.0 would use none of the 8 GPUs: libcudart.so.11.0 is missing".
std::string summary_of(const FrameworkAnswer& answer) {
  std::size_t used = 0, unknown = 0;
  for (const GpuAnswer& gpu : answer.gpus) {
    used += gpu.outcome == Outcome::works || gpu.outcome == Outcome::works_after_compiling ? 1 : 0;
    unknown += gpu.outcome == Outcome::unknown ? 1 : 0;
  }
  const std::size_t all = answer.gpus.size();
  const GpuAnswer& first = answer.gpus.front();
  const bool alike = counted(answer.gpus, verdict_and_reason).size() == 1;
  const std::string of =
      used == all
          ? fmt::format("all {} GPUs", all)
          : fmt::format("{} of the {} GPUs", used == 0 ? "none" : std::to_string(used), all);
  if (unknown == all) return fmt::format("{} on these {} GPUs: not known", answer.subject, all);
  const std::string& why = first.brief.empty() ? first.reason : first.brief;
  return fmt::format("{} would use {}{}{}",
                     answer.subject,
                     of,
                     unknown ? fmt::format("; of {} it is not known", unknown) : "",
                     used == 0 && alike ? ": " + why : "");
}

/// What a question without a GPU comes to.
std::string verdict_without_gpu(const FrameworkAnswer& answer) {
  if (!answer.findings.empty()) return answer.findings.front().sentence;
  return fmt::format("{}: no GPU was asked about; name one with --gpu", answer.subject);
}

std::string gpu_lines(const FrameworkAnswer& answer, std::size_t width) {
  const auto lines = counted(answer.gpus, [&](const GpuAnswer& gpu) {
    return fmt::format("{}: {}", name_of_gpu(gpu), verdict_and_reason(gpu));
  });
  if (answer.gpus.size() == 1) {
    const bool range = !answer.gpus.front().range.empty();
    return headline(
        fmt::format("{} on {}", range ? answer.asked : answer.subject, lines.front().second),
        width);
  }
  std::string out = headline(summary_of(answer), width);
  for (const auto& [count, line] : lines)
    out += "  " + wrapped((count > 1 ? fmt::format("{} x ", count) : "") + line, 4, width) + "\n";
  return out;
}

std::string build_text(const NewestBuild& build, std::optional<int> last) {
  std::string line = fmt::format("{}, driver {}{}",
                                 build.text(),
                                 build.driver.minimum.text(),
                                 last ? fmt::format(" to R{}", *last) : " or newer");
  if (build.compiled_at_start) line += ", compiled by the driver at the first start";
  if (!build.cudnn) return line;
  const std::string cudnn = build.cudnn->text();
  if (build.cudnn_knows_gpu.no())
    return line +
           fmt::format(" (its cuDNN {} has no code for this GPU: convolutions may fail)", cudnn);
  const bool sure = build.cudnn_knows_gpu.yes() && !build.cudnn_knows_gpu.recalled;
  return line + (sure ? fmt::format(", cuDNN {}", cudnn)
                      : fmt::format(" (cuDNN {} on this GPU: not confirmed)", cudnn));
}

std::string newest_line(const std::string& label,
                        const NewestBuild& build,
                        std::optional<int> last,
                        std::size_t width) {
  return "  " + wrapped(label + ": " + build_text(build, last), 4, width) + "\n";
}

std::string newest_lines(const GpuAnswer& gpu, std::size_t width) {
  std::string lines;
  const std::string after = gpu.newest_after.empty() ? "" : " (once the driver is changed)";
  const auto last = gpu.last_driver_branch;
  for (const Newest& newest : gpu.newest) {
    if (newest.certain)
      lines += newest_line("newest that works" + after, *newest.certain, last, width);
    if (newest.with_cudnn)
      lines += newest_line("newest with cuDNN", *newest.with_cudnn, last, width);
    if (newest.possible)
      lines += newest_line("perhaps, not confirmed", *newest.possible, last, width);
  }
  if (gpu.newest_toolkit)
    lines += fmt::format("  newest CUDA toolkit: {}\n", gpu.newest_toolkit->text());
  if (gpu.last_driver_branch)
    lines += fmt::format("  last driver branch: R{}\n", *gpu.last_driver_branch);
  return lines;
}

/// "TensorFlow: up to 2.11 with CUDA 11.2, driver 450.80.02 to R470, cuDNN 8.1".
std::string limit_lines(const GpuAnswer& gpu, std::size_t width) {
  std::string lines;
  const std::string after = gpu.newest_after.empty() ? "" : "once the driver is changed, ";
  const auto add =
      [&](const std::string& framework, const std::string& up_to, const NewestBuild& build) {
        std::string text = build_text(build, gpu.last_driver_branch);
        text.replace(0, framework.size(), up_to);
        lines += "  " + wrapped(framework + ": " + text, 4, width) + "\n";
      };
  for (const Newest& newest : gpu.newest) {
    if (newest.certain) add(title_of(newest.certain->framework), after + "up to", *newest.certain);
    if (newest.with_cudnn)
      add(title_of(newest.with_cudnn->framework), after + "with cuDNN up to", *newest.with_cudnn);
    if (newest.possible)
      add(title_of(newest.possible->framework),
          after + "perhaps, not confirmed, up to",
          *newest.possible);
  }
  return lines;
}

/// "K20m (Kepler 3.5): last driver branch R470, last CUDA 11.8".
std::string life_line(const GpuAnswer& gpu) {
  if (!gpu.gpu.capability) return fmt::format("{}: {}", name_of_gpu(gpu), gpu.reason);
  std::vector<std::string> parts;
  const auto first = first_driver_of(*gpu.gpu.capability);
  if (gpu.last_driver_branch) {
    parts.push_back(fmt::format("last driver branch R{}", *gpu.last_driver_branch));
  } else if (first) {
    parts.push_back(fmt::format("driver {} or newer", first->text()));
  }
  const ArchitectureRow* const life = life_of(*gpu.gpu.capability);
  if (gpu.newest_toolkit)
    parts.push_back(
        fmt::format("{} CUDA {}",
                    life && life->last_toolkit == gpu.newest_toolkit ? "last" : "newest",
                    gpu.newest_toolkit->text()));
  return fmt::format("{}: {}", name_of_gpu(gpu), fmt::join(parts, ", "));
}

/// Without a framework: what each GPU can have.
std::string lives(const FrameworkAnswer& answer, std::size_t width) {
  const auto lines = counted(answer.gpus, [&](const GpuAnswer& gpu) {
    return wrapped(life_line(gpu), 2, width) + "\n" + limit_lines(gpu, width);
  });
  std::string out;
  for (const auto& [count, text] : lines)
    out += (count > 1 ? fmt::format("{} x ", count) : "") + text;
  return out;
}

/// With a framework: the newest versions that would work, once for equal GPUs.
std::string newest_of_all(const FrameworkAnswer& answer, std::size_t width) {
  const auto blocks = counted(answer.gpus, [&](const GpuAnswer& gpu) {
    const std::string lines = newest_lines(gpu, width);
    return lines.empty() ? "" : name_of_gpu(gpu) + "\n" + lines;
  });
  std::string out;
  for (const auto& [count, block] : blocks) out += block;
  return out.empty() ? "" : "\n" + out;
}

std::string needs_table(const FrameworkAnswer& answer) {
  std::vector<std::vector<std::string>> rows = {{"", "needs", "has", "met"}};
  for (const NeedRow& row : answer.needs) {
    rows.push_back({row.what,
                    row.need,
                    row.have,
                    row.met == Truth::unknown ? "?" : std::string(name_of(row.met))});
  }
  return rows.size() > 1 ? table(rows) + "\n" : "";
}

/// "opens libcudart.so.11.0 libcusolver.so.10 (missing)".
std::string opens_line(const FrameworkAnswer& answer) {
  std::string line = "opens";
  for (const std::string& name : answer.loads) {
    const bool missing = std::ranges::find(answer.missing, name) != answer.missing.end();
    line += fmt::format(" {}{}", name, missing ? " (missing)" : "");
  }
  return line;
}

/// Where a table has it from is for those who look a row up: in JSON.
std::vector<Finding> without_sources(std::vector<Finding> findings) {
  for (Finding& finding : findings) {
    std::erase_if(finding.evidence,
                  [](const Evidence& line) { return line.name.starts_with("source: "); });
    for (Evidence& line : finding.evidence) {
      constexpr std::string_view kRecalled = "by a row that was not confirmed";
      if (line.name.starts_with(kRecalled)) line.name = kRecalled;
    }
  }
  return findings;
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
          {"install", build.command()},
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
  if (!gpu.once.empty()) json["once"] = gpu.once;
  if (!gpu.range.empty()) json["range"] = gpu.range;
  if (!gpu.newest_after.empty()) json["newest_after"] = gpu.newest_after;
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

std::string text(const FrameworkAnswer& answer, const TextStyle& style) {
  const std::size_t width = style.width;
  std::string out;
  for (const std::string& line : answer.first) out += headline(line, width);
  const bool without_gpu = answer.gpus.empty() && !answer.subject.empty();
  const bool lead = (without_gpu || answer.subject.empty()) && !answer.findings.empty();
  if (answer.subject.empty()) {
    if (lead) out += wrapped(answer.findings.front().sentence, 2, width) + "\n\n";
    out += lives(answer, width);
  } else {
    out += without_gpu ? wrapped(verdict_without_gpu(answer), 2, width) + "\n"
                       : gpu_lines(answer, width);
  }
  out += "\n" + needs_table(answer);
  if (!answer.loads.empty()) out += wrapped(opens_line(answer), 6, width) + "\n\n";
  for (const std::string& note : answer.notes)
    out += fmt::format("note: {}\n", wrapped(note, std::string_view("note: ").size(), width));
  while (out.ends_with("\n\n")) out.pop_back();
  out += findings_text(without_sources(answer.findings),
                       {.colour = style.colour, .verbose = true, .width = width},
                       lead);
  if (!answer.subject.empty()) out += newest_of_all(answer, width);
  out += fmt::format("\nThe tables were last compared with their sources on {}.\n", tables().made);
  return out;
}

Json to_json(const FrameworkAnswer& answer) {
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
  json["first"] = answer.first;
  json["notes"] = answer.notes;
  json["tables_made"] = tables().made;
  return json;
}

}  // namespace launchgap::doctor
