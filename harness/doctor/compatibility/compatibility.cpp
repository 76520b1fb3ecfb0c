#include "harness/doctor/compatibility/compatibility.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap::doctor {
namespace {

Verdict by_row(bool yes, std::string reason, const Source& source, std::string_view column) {
  return {yes ? Truth::yes : Truth::no, std::move(reason), source.text, source.recalled(column)};
}

Verdict unknown(std::string reason) {
  return {Truth::unknown, std::move(reason), "", false};
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
                      above->toolkit.prefix(2)),
          "",
          false};
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

}  // namespace launchgap::doctor
