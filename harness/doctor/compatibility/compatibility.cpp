#include "harness/doctor/compatibility/compatibility.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap::doctor {
namespace {

Verdict by_row(bool yes, std::string reason, const Source& source, std::string_view column) {
  return {yes ? Truth::yes : Truth::no, std::move(reason), source.text, source.recalled(column)};
}

Verdict unknown(std::string reason) {
  return {Truth::unknown, std::move(reason)};
}

/// A toolkit's own row, or the first of its series: a release that the table leaves out, or a
/// series alone, needs no newer driver than that.
const ToolkitRow* row_of(const Version& toolkit) {
  const auto& rows = tables().toolkits;
  const Version series = *Version::parse(toolkit.prefix(2));
  const auto in_series = [&](const ToolkitRow& row) { return row.toolkit.in_series(series); };
  auto found = std::ranges::find(rows, toolkit, &ToolkitRow::toolkit);
  if (found == rows.end()) found = std::ranges::find_if(rows, in_series);
  return found == rows.end() ? nullptr : &*found;
}

/// Whether a driver is at least another; "525" says nothing about 525.60.13.
Truth at_least(const Version& driver, const Version& other) {
  if (driver >= other) return Truth::yes;
  const bool branch_only = driver.parts().size() == 1 && driver.major() == other.major();
  return branch_only ? Truth::unknown : Truth::no;
}

}  // namespace

std::string_view name_of(Truth truth) {
  constexpr std::string_view kNames[] = {"no", "yes", "unknown"};
  return kNames[static_cast<std::size_t>(truth)];
}

const ArchitectureRow* life_of(Capability capability) {
  const auto& rows = tables().architectures;
  const auto found = std::ranges::find(rows, capability, &ArchitectureRow::capability);
  return found == rows.end() ? nullptr : &*found;
}

Verdict toolkit_knows_gpu(const Version& toolkit, Capability capability) {
  const ArchitectureRow* const life = life_of(capability);
  if (!life) return unknown(fmt::format("no table has compute capability {}", capability.text()));
  const Version series = *Version::parse(toolkit.prefix(2));
  if (series < life->first_toolkit) {
    return by_row(false,
                  fmt::format("{} ({}) needs CUDA {} or newer",
                              life->architecture,
                              capability.text(),
                              life->first_toolkit.text()),
                  life->source,
                  "first_toolkit");
  }
  if (life->last_toolkit && series > *life->last_toolkit) {
    return by_row(false,
                  fmt::format("CUDA {} was the last with {} ({})",
                              life->last_toolkit->text(),
                              life->architecture,
                              capability.text()),
                  life->source,
                  "last_toolkit");
  }
  return by_row(
      true,
      fmt::format("CUDA {} has {} ({})", series.text(), life->architecture, capability.text()),
      life->source,
      "last_toolkit");
}

Verdict driver_knows_gpu(const Version& driver, Capability capability) {
  const ArchitectureRow* const life = life_of(capability);
  if (!life) return unknown(fmt::format("no table has compute capability {}", capability.text()));
  if (!life->driver_branch_applies) {
    return unknown(fmt::format(
        "the driver of {} {} comes with its board", life->architecture, capability.text()));
  }
  if (life->last_driver_branch && driver.major() > *life->last_driver_branch) {
    return by_row(false,
                  fmt::format("R{} was the last driver branch for {} ({})",
                              *life->last_driver_branch,
                              life->architecture,
                              capability.text()),
                  life->source,
                  "last_driver_branch");
  }
  const auto first = first_driver_of(capability);
  if (first && at_least(driver, *first) != Truth::yes) {
    const bool open = at_least(driver, *first) == Truth::unknown;
    return unknown(fmt::format("driver {} {} older than {}, of CUDA {}, the first with {}",
                               driver.text(),
                               open ? "may be" : "is",
                               first->text(),
                               life->first_toolkit.text(),
                               life->architecture));
  }
  return by_row(true,
                fmt::format("driver {} has {}", driver.text(), life->architecture),
                life->source,
                "last_driver_branch");
}

std::optional<DriverNeed> driver_needed_by(const Version& toolkit) {
  const ToolkitRow* const row = row_of(toolkit);
  if (!row) return std::nullopt;
  Version minimum = row->minimum_driver.value_or(row->bundled_driver);
  // 11.0 bundles a driver that is older than the minimum of the other 11.x.
  return DriverNeed{row->bundled_driver, std::min(minimum, row->bundled_driver)};
}

std::optional<Version> first_driver_of(Capability capability) {
  const ArchitectureRow* const life = life_of(capability);
  if (!life || !life->driver_branch_applies) return std::nullopt;
  const ToolkitRow* const row = row_of(life->first_toolkit);
  if (!row) return std::nullopt;
  return row->bundled_driver;
}

std::optional<DriverNeed> driver_needed_by(const Version& toolkit, Capability capability) {
  auto need = driver_needed_by(toolkit);
  const auto first = first_driver_of(capability);
  if (need && first) {
    need->minimum = std::max(need->minimum, *first);
    need->bundled = std::max(need->bundled, *first);
  }
  return need;
}

Verdict driver_serves_gpu(const Version& driver, Capability capability) {
  Verdict knows = driver_knows_gpu(driver, capability);
  const auto first = first_driver_of(capability);
  if (knows.no() || !first || driver.major() >= first->major()) return knows;
  const ArchitectureRow& life = *life_of(capability);
  return by_row(false,
                fmt::format("the oldest driver that a table has for {} ({}) is {}, of CUDA {}",
                            life.architecture,
                            capability.text(),
                            first->text(),
                            life.first_toolkit.text()),
                life.source,
                "first_toolkit");
}

Verdict driver_serves_toolkit(const Version& driver, const Version& toolkit) {
  const ToolkitRow* const row = row_of(toolkit);
  const auto need = driver_needed_by(toolkit);
  if (!need) return unknown(fmt::format("CUDA {} is in no table", toolkit.text()));
  const auto says = [&](Truth truth, std::string reason) {
    return Verdict{truth, std::move(reason), row->source.text, row->source.recalled("toolkit")};
  };
  if (at_least(driver, need->bundled) == Truth::yes) {
    return says(Truth::yes,
                fmt::format("driver {} is not older than CUDA {}'s own, {}",
                            driver.text(),
                            toolkit.text(),
                            need->bundled.text()));
  }
  switch (at_least(driver, need->minimum)) {
    case Truth::yes:
      return says(Truth::yes,
                  fmt::format("driver {} runs CUDA {} by minor-version compatibility (from {} on), "
                              "without compiling newer PTX and without newer features",
                              driver.text(),
                              toolkit.text(),
                              need->minimum.text()));
    case Truth::no:
      return says(
          Truth::no,
          fmt::format("CUDA {} needs driver {} or newer", toolkit.text(), need->minimum.text()));
    case Truth::unknown:
      break;
  }
  return says(Truth::unknown,
              fmt::format("CUDA {} needs driver {}, and '{}' is only a branch",
                          toolkit.text(),
                          need->minimum.text(),
                          driver.text()));
}

Verdict driver_compiles_ptx_of(const Version& driver, const Version& toolkit) {
  const ToolkitRow* const row = row_of(toolkit);
  if (!row) return unknown(fmt::format("CUDA {} is in no table", toolkit.text()));
  const Truth truth = at_least(driver, row->bundled_driver);
  return {truth,
          fmt::format("PTX of CUDA {} is compiled by driver {} and newer",
                      toolkit.text(),
                      row->bundled_driver.text()),
          row->source.text,
          row->source.recalled("bundled_driver_linux")};
}

std::optional<Version> newest_toolkit(Capability capability, const std::optional<Version>& driver) {
  const ArchitectureRow* const life = life_of(capability);
  if (!life) return std::nullopt;
  const auto& rows = tables().toolkits;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    const Version series = *Version::parse(row->toolkit.prefix(2));
    if (!toolkit_knows_gpu(series, capability).yes()) continue;
    if (driver ? driver_serves_toolkit(*driver, row->toolkit).yes()
               : !life->last_driver_branch ||
                     driver_needed_by(series)->minimum.major() <= *life->last_driver_branch) {
      return series;
    }
  }
  return std::nullopt;
}

Verdict toolkit_exists(const Version& toolkit) {
  const auto& rows = tables().toolkits;
  const Version series = *Version::parse(toolkit.prefix(2));
  for (const ToolkitRow& row : rows) {
    if (row.toolkit.in_series(series)) return {Truth::yes, "", row.source.text, false};
  }
  const Version& oldest = rows.front().toolkit;
  const Version& newest = rows.back().toolkit;
  if (series < oldest || series > newest) {
    return unknown(fmt::format("CUDA {} is in no table; known are {} to {}",
                               toolkit.text(),
                               oldest.prefix(2),
                               newest.prefix(2)));
  }
  const auto above =
      std::ranges::find_if(rows, [&](const ToolkitRow& row) { return row.toolkit > series; });
  return {Truth::no,
          fmt::format("there is no CUDA {}; its neighbours are {} and {}",
                      toolkit.text(),
                      std::prev(above)->toolkit.prefix(2),
                      above->toolkit.prefix(2))};
}

std::optional<std::string> soname_in_toolkit(const Version& toolkit, std::string_view library) {
  for (const SonameRow& row : tables().toolkit_sonames) {
    if (row.name == library && row.versions.contains(toolkit)) return row.soname;
  }
  return std::nullopt;
}

std::optional<std::string> soname_of_cudnn(const Version& cudnn) {
  for (const SonameRow& row : tables().cudnn_sonames) {
    if (row.versions.contains(cudnn)) return row.soname;
  }
  return std::nullopt;
}

// --- What runs on a GPU: cuDNN's code, images, the builds of frameworks ---

namespace {

/// An older release that has no code for a GPU any more; rows that were not confirmed do not count.
const CudnnRow* dropped_before(const Version& cudnn, Capability capability) {
  for (const CudnnRow& row : tables().cudnn) {
    const bool older = row.cudnn.versions().back() < cudnn && !row.cudnn.contains(cudnn);
    if (older && row.minimum && capability < *row.minimum && !row.source.recalled("min_cc"))
      return &row;
  }
  return nullptr;
}

}  // namespace

Verdict cudnn_knows_gpu(const Version& cudnn, const Version& cuda, Capability capability) {
  const CudnnRow* row = nullptr;
  bool release_known = false;
  for (const CudnnRow& candidate : tables().cudnn) {
    if (!candidate.cudnn.contains(cudnn)) continue;
    release_known = true;
    if (candidate.cuda.contains(cuda)) row = &candidate;
  }
  if (!row) {
    if (const CudnnRow* const dropped = dropped_before(cudnn, capability)) {
      return {Truth::no,
              fmt::format("cuDNN {} began at {} already, and what was dropped does not come back",
                          dropped->cudnn.text(),
                          dropped->minimum->text()),
              dropped->source.text,
              false};
    }
    const std::string missing = release_known ? fmt::format(" with CUDA {}", cuda.text()) : "";
    return {Truth::unknown, fmt::format("no table has cuDNN {}{}", cudnn.text(), missing)};
  }
  const auto says = [&](Truth truth, std::string reason, std::string_view column) {
    return Verdict{truth, std::move(reason), row->source.text, row->source.recalled(column)};
  };
  if (Verdict toolkit = toolkit_knows_gpu(cuda, capability); toolkit.no()) return toolkit;
  if (row->maximum && capability > *row->maximum) {
    return says(Truth::no,
                fmt::format("cuDNN {} ends at {}", cudnn.text(), row->maximum->text()),
                "max_cc");
  }
  if (!row->minimum) {
    return says(Truth::unknown,
                fmt::format("the oldest GPU of cuDNN {} is not known", cudnn.text()),
                "min_cc");
  }
  return says(capability < *row->minimum ? Truth::no : Truth::yes,
              fmt::format("cuDNN {} begins at {}", cudnn.text(), row->minimum->text()),
              "min_cc");
}

Verdict cudnn_serves(const Version& loaded, const Version& compiled) {
  if (loaded.major() != compiled.major()) {
    return {Truth::no,
            fmt::format("cuDNN {} and {} have different majors", loaded.text(), compiled.text())};
  }
  // "8" alone says nothing about the minor.
  if (loaded.parts().size() == 1 && compiled.minor() > 0) {
    return {Truth::unknown, fmt::format("the minor of cuDNN {} is not known", loaded.text())};
  }
  return {loaded.minor() >= compiled.minor() ? Truth::yes : Truth::no,
          fmt::format("a program built with cuDNN {} needs {} or newer of the same major",
                      compiled.text(),
                      compiled.prefix(2))};
}

std::optional<CodeImage> CodeImage::parse(std::string_view text) {
  CodeImage image;
  if (text.starts_with("compute_") || text.ends_with("+PTX")) image.kind = Encoding::ptx;
  if (text.ends_with("+PTX")) text.remove_suffix(4);
  std::string target(text);
  if (text.starts_with("compute_")) target = "sm_" + target.substr(8);
  if (target.ends_with('a') || target.ends_with('f')) {
    image.variant = target.back();
    target.pop_back();
  }
  const auto capability = Capability::parse(target);
  if (!capability) return std::nullopt;
  image.target = *capability;
  return image;
}

Verdict image_runs(const CodeImage& image, Capability capability) {
  const std::string target = image.target.text();
  const auto says = [](bool yes, std::string reason) {
    return Verdict{yes ? Truth::yes : Truth::no, std::move(reason)};
  };
  if (image.variant == 'a') {
    return says(image.target == capability,
                fmt::format("code for {}a runs on {} only", target, target));
  }
  if (image.variant == 'f') {
    if (image.target.major != capability.major || capability < image.target) {
      return says(false, fmt::format("code for {}f stays in its family", target));
    }
    return {Truth::unknown,
            fmt::format("which GPUs are of the family of {}f is in no table", target),
            "",
            true};
  }
  if (image.kind == CodeImage::Encoding::ptx) {
    return says(image.target <= capability,
                fmt::format("PTX for {} runs from {} on", target, target));
  }
  return says(image.target.major == capability.major && image.target.minor <= capability.minor,
              fmt::format("machine code for {} runs on {}.{} to {}.9",
                          target,
                          image.target.major,
                          image.target.minor,
                          image.target.major));
}

namespace {

std::string list_of(const std::vector<Capability>& capabilities) {
  std::string out;
  for (const Capability c : capabilities) out += (out.empty() ? "" : ", ") + c.text();
  return out;
}

/// Only the minimum of the list is known: what the toolkit has and is not below it is there.
Verdict by_minimum(const BuildCode& code, const Version& cuda, Capability capability) {
  if (capability < *code.at_least) {
    return {Truth::no, fmt::format("the build begins at {}", code.at_least->text())};
  }
  if (toolkit_knows_gpu(cuda, capability).yes()) {
    return {Truth::yes, fmt::format("the build begins at {}", code.at_least->text())};
  }
  return {Truth::unknown,
          fmt::format("the GPU is newer than CUDA {}, and what PTX the build has is not known",
                      cuda.text())};
}

}  // namespace

CodeVerdict code_runs(const BuildCode& code, const Version& cuda, Capability capability) {
  const ArchitectureRow* const life = life_of(capability);
  if (life && life->last_toolkit && *Version::parse(cuda.prefix(2)) > *life->last_toolkit) {
    Verdict verdict = toolkit_knows_gpu(cuda, capability);
    verdict.reason = fmt::format("it was built with CUDA {}, and {}", cuda.text(), verdict.reason);
    return {verdict};
  }
  if (code.at_least) return {by_minimum(code, cuda, capability)};
  if (code.machine_code.empty()) {
    return {{Truth::unknown, "what GPUs the build has code for is in no table"}};
  }
  const auto runs = [&](Capability target, CodeImage::Encoding kind) {
    return image_runs({kind, target}, capability).yes();
  };
  for (const Capability target : code.machine_code) {
    if (runs(target, CodeImage::Encoding::machine_code)) {
      return {{Truth::yes, fmt::format("the build has machine code for {}", target.text())}};
    }
  }
  const std::string has =
      fmt::format("the build has machine code for {}", list_of(code.machine_code));
  const Capability oldest = std::ranges::min(code.machine_code);
  if (code.ptx == Ptx::none || capability < oldest) {
    return {{Truth::no, has + (code.ptx == Ptx::none ? " and no PTX" : "")}};
  }
  if (code.ptx == Ptx::unknown || !code.ptx_target) {
    return {{Truth::unknown, has + ", and what PTX it has is not known"}};
  }
  if (!runs(*code.ptx_target, CodeImage::Encoding::ptx)) {
    return {{Truth::no, fmt::format("{} and PTX for {}", has, code.ptx_target->text())}};
  }
  return {{Truth::yes,
           fmt::format("{}; the driver compiles its PTX for {}", has, code.ptx_target->text())},
          true};
}

}  // namespace launchgap::doctor
