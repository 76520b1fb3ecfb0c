#include "harness/doctor/compatibility/compatibility_tables.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/core/text.h"
#include "harness/record/json.h"

namespace launchgap::doctor {
namespace {

using TextOf = std::function<std::string_view(std::string_view)>;

/// One row while it is read: cells by column, and errors that say where.
class CsvRow {
 public:
  CsvRow(const CsvTable& table, std::size_t index) : table_(table), index_(index) {}

  const std::string& text(std::string_view column) const {
    const std::string& cell = table_.at(index_, column);
    if (cell.empty()) fail(column, "is empty");
    return cell;
  }
  const std::string& maybe_text(std::string_view column) const { return table_.at(index_, column); }

  Version version(std::string_view column) const {
    auto version = Version::parse(text(column));
    if (!version) fail(column, "is no version");
    return *std::move(version);
  }
  std::optional<Version> maybe_version(std::string_view column) const {
    if (maybe_text(column).empty()) return std::nullopt;
    return version(column);
  }
  VersionSet versions(std::string_view column) const {
    try {
      return VersionSet::parse(text(column));
    } catch (const Error& error) {
      fail(column, error.what());
    }
  }
  Capability capability(std::string_view column) const {
    return as_capability(column, text(column));
  }
  std::optional<Capability> maybe_capability(std::string_view column) const {
    if (maybe_text(column).empty()) return std::nullopt;
    return capability(column);
  }
  Capability as_capability(std::string_view column, std::string_view text) const {
    const auto capability = Capability::parse(text);
    if (!capability) fail(column, "is no compute capability");
    return *capability;
  }
  double number(std::string_view column) const { return table_.number(index_, column); }
  int integer(std::string_view column) const {
    const std::optional<int> value = number_of_text<int>(text(column));
    if (!value) fail(column, "is no number");
    return *value;
  }
  int pci_id(std::string_view column) const {
    const std::string& cell = text(column);
    const std::optional<int> value = number_of_text<int>(cell, 16);
    if (!value || cell.size() != 4) fail(column, "is no PCI device id of four digits");
    return *value;
  }
  bool yes(std::string_view column, std::string_view yes, std::string_view no) const {
    const std::string& cell = maybe_text(column);
    if (cell != yes && cell != no) fail(column, fmt::format("is neither '{}' nor '{}'", yes, no));
    return cell == yes;
  }
  Source source() const { return {text("source")}; }

  [[noreturn]] void fail(std::string_view column, std::string_view what) const {
    throw Error("{}: {} '{}' {}", table_.where(index_), column, table_.at(index_, column), what);
  }

 private:
  const CsvTable& table_;
  std::size_t index_;
};

template <class Value>
std::vector<Value> read(const TextOf& text_of,
                        const std::string& name,
                        Value (*row)(const CsvRow&)) {
  const CsvTable table = CsvTable::parse(text_of(name), "data/" + name);
  std::vector<Value> values;
  for (std::size_t i = 0; i < table.size(); ++i) values.push_back(row(CsvRow(table, i)));
  if (values.empty()) throw Error("data/{} has no rows", name);
  return values;
}

GpuRow gpu(const CsvRow& row) {
  return {row.text("gpu"),
          row.capability("compute_capability"),
          row.integer("sm_count"),
          row.number("boost_mhz"),
          row.source()};
}

PciRange pci_range(const CsvRow& row) {
  PciRange range{row.pci_id("first_id"),
                 row.pci_id("last_id"),
                 row.text("chip"),
                 row.text("architecture"),
                 row.capability("compute_capability"),
                 row.source()};
  if (range.last < range.first) row.fail("last_id", "is below first_id");
  return range;
}

PciGpu pci_gpu(const CsvRow& row) {
  return {row.pci_id("id"), row.text("gpu"), row.source()};
}

GpuName gpu_name(const CsvRow& row) {
  return {row.text("gpu"), row.capability("compute_capability"), row.source()};
}

ToolkitRow toolkit(const CsvRow& row) {
  return {row.version("toolkit"),
          row.version("bundled_driver_linux"),
          row.maybe_version("min_driver_minor_compat"),
          row.source()};
}

ArchitectureRow architecture(const CsvRow& row) {
  ArchitectureRow life{row.text("architecture"),
                       row.capability("compute_capability"),
                       row.version("first_toolkit"),
                       {},
                       {},
                       row.yes("driver_branch_applies", "yes", "no"),
                       row.source()};
  if (row.text("last_toolkit") != "current") life.last_toolkit = row.version("last_toolkit");
  const std::string& branch = row.text("last_driver_branch");
  if (branch == "current") return life;
  const auto number = Version::parse(std::string_view(branch).substr(1));
  if (branch.front() != 'R' || !number || number->parts().size() != 1) {
    row.fail("last_driver_branch", "is neither 'current' nor a branch such as R470");
  }
  life.last_driver_branch = number->major();
  return life;
}

CudnnRow cudnn_support(const CsvRow& row) {
  return {row.versions("cudnn"),
          row.versions("cuda"),
          row.maybe_capability("min_cc"),
          row.maybe_capability("max_cc"),
          row.maybe_version("min_driver_linux"),
          row.maybe_text("note"),
          row.source()};
}

BuildCode device_code(const CsvRow& row) {
  BuildCode code;
  std::string_view cell = row.maybe_text("compute_capabilities");
  if (cell.starts_with(">=")) {
    code.at_least = row.as_capability("compute_capabilities", cell.substr(2));
    cell = {};
  }
  for (const std::string_view part : parts_of(cell, " "))
    code.machine_code.push_back(row.as_capability("compute_capabilities", part));
  const std::string& ptx = row.maybe_text("ptx");
  if (ptx.empty()) return code;
  code.ptx = ptx == "none" ? Ptx::none : Ptx::some;
  if (ptx != "none" && ptx != "yes") code.ptx_target = row.capability("ptx");
  return code;
}

BuildRow tensorflow_build(const CsvRow& row) {
  BuildRow build{.framework = "tensorflow",
                 .versions = row.versions("tf_version_range"),
                 .package = "wheel",
                 .cuda = row.version("cuda"),
                 .cudnn = row.maybe_version("cudnn"),
                 .code = device_code(row),
                 .extra = row.maybe_text("extra"),
                 .note = "",
                 .source = row.source()};
  build.default_build = true;  // there is one build per version
  return build;
}

BuildRow torch_build(const CsvRow& row) {
  return {.framework = "torch",
          .versions = row.versions("pytorch_version_range"),
          .package = row.yes("package", "wheel", "conda") ? "wheel" : "conda",
          .cuda = row.version("cuda"),
          .cudnn = row.maybe_version("cudnn"),
          .code = device_code(row),
          .brings_libraries = true,
          .extra = "",
          .default_build = row.yes("pypi", "yes", ""),
          .note = row.maybe_text("note"),
          .source = row.source()};
}

SonameRow toolkit_soname(const CsvRow& row) {
  return {row.versions("toolkit"), row.text("library"), row.text("soname"), row.source()};
}

SonameRow cudnn_soname(const CsvRow& row) {
  return {row.versions("cudnn"), "cudnn", row.text("soname"), row.source()};
}

FrameworkLibraryRow framework_library(const CsvRow& row) {
  return {row.text("framework"),
          row.versions("versions"),
          row.text("library"),
          row.yes("if_missing", "silent-cpu", "import-error"),
          row.source()};
}

Version version_in(std::string_view text, std::string_view set) {
  if (auto version = Version::parse(text)) return *std::move(version);
  throw Error("'{}' is no set of versions: '{}' is no version", set, text);
}

/// 2.12 of 2.11: the first version after all of 2.11.x.
Version after(const Version& version) {
  std::string text;
  for (std::size_t i = 0; i < version.parts().size(); ++i) {
    const bool last = i + 1 == version.parts().size();
    text += fmt::format("{}{}", i ? "." : "", version.part(i) + (last ? 1 : 0));
  }
  return *Version::parse(text);
}

bool before(const std::optional<Version>& above, const Version& version) {
  return above && *above <= version;
}

}  // namespace

Tables Tables::parse(const TextOf& text_of) {
  Tables t;
  t.gpus = read<GpuRow>(text_of, "generations.csv", gpu);
  t.pci_ranges = read<PciRange>(text_of, "pci_devices.csv", pci_range);
  t.pci_gpus = read<PciGpu>(text_of, "pci_gpus.csv", pci_gpu);
  t.gpu_names = read<GpuName>(text_of, "gpu_names.csv", gpu_name);
  t.toolkits = read<ToolkitRow>(text_of, "toolkit_driver.csv", toolkit);
  t.architectures = read<ArchitectureRow>(text_of, "architecture_life.csv", architecture);
  t.cudnn = read<CudnnRow>(text_of, "cudnn_support.csv", cudnn_support);
  t.builds = read<BuildRow>(text_of, "tensorflow_builds.csv", tensorflow_build);
  for (auto& build : read<BuildRow>(text_of, "pytorch_builds.csv", torch_build)) {
    t.builds.push_back(std::move(build));
  }
  t.toolkit_sonames = read<SonameRow>(text_of, "toolkit_sonames.csv", toolkit_soname);
  t.cudnn_sonames = read<SonameRow>(text_of, "cudnn_sonames.csv", cudnn_soname);
  t.framework_libraries =
      read<FrameworkLibraryRow>(text_of, "framework_libraries.csv", framework_library);
  try {
    t.made = field<std::string>(parse_json(text_of("made.json")), "made");
  } catch (const Error& error) {
    throw Error("data/made.json: {}", error.what());
  }
  return t;
}

const Tables& tables() {
  static const Tables parsed = Tables::parse(embedded_table);
  return parsed;
}

std::optional<Capability> Capability::parse(std::string_view text) {
  std::string dotted(text);
  if (text.starts_with("sm_")) {
    dotted = text.substr(3);
    if (dotted.size() < 2) return std::nullopt;
    dotted.insert(dotted.size() - 1, ".");
  }
  const auto version = Version::parse(dotted);
  if (!version || version->parts().size() != 2) return std::nullopt;
  if (version->major() < 1 || version->major() > 99 || version->minor() > 9) return std::nullopt;
  return Capability{version->major(), version->minor()};
}

std::string Capability::text() const {
  return fmt::format("{}.{}", major, minor);
}

VersionSet::VersionRange VersionSet::parse_item(std::string_view text) {
  const std::string_view set = text;
  if (text.starts_with(">=")) return {version_in(text.substr(2), set), {}, {}};
  if (text.ends_with("+")) return {version_in(text.substr(0, text.size() - 1), set), {}, {}};
  if (text.starts_with("<=")) {
    const Version last = version_in(text.substr(2), set);
    return {*Version::parse("0"), last, after(last)};
  }
  if (text.ends_with(".x")) text.remove_suffix(2);
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const Version first = version_in(text.substr(0, dash), set);
    const Version last = version_in(text.substr(dash + 1), set);
    if (last < first) throw Error("'{}' is no set of versions: it runs backwards", set);
    return {first, last, after(last)};
  }
  const Version version = version_in(text, set);
  return {version, version, after(version)};
}

VersionSet VersionSet::parse(std::string_view text) {
  VersionSet set;
  set.text_ = text;
  for (const std::string_view item : parts_of(text, " ")) set.items_.push_back(parse_item(item));
  if (set.items_.empty()) throw Error("an empty set of versions");
  return set;
}

bool VersionSet::contains(const Version& version) const {
  return std::ranges::any_of(items_, [&](const VersionRange& item) {
    return item.first <= version && !before(item.above, version);
  });
}

bool VersionSet::overlaps(const VersionSet& other) const {
  return std::ranges::any_of(items_, [&](const VersionRange& a) {
    return std::ranges::any_of(other.items_, [&](const VersionRange& b) {
      return !before(a.above, b.first) && !before(b.above, a.first);
    });
  });
}

std::vector<Version> VersionSet::versions() const {
  std::vector<Version> out;
  for (const VersionRange& item : items_) {
    out.push_back(item.first);
    if (!item.last || *item.last == item.first) continue;
    if (item.first.major() == item.last->major()) {
      for (int minor = item.first.minor() + 1; minor < item.last->minor(); ++minor) {
        out.push_back(*Version::parse(fmt::format("{}.{}", item.first.major(), minor)));
      }
    }
    out.push_back(*item.last);
  }
  return out;
}

bool Source::recalled(std::string_view column) const {
  for (std::string_view part : parts_of(text, "; ")) {
    if (!part.starts_with("recalled")) continue;
    const std::size_t colon = part.find(": ");
    if (colon == std::string_view::npos) return true;
    const auto columns = parts_of(part.substr(colon + 2), " ");
    if (std::ranges::find(columns, column) != columns.end()) return true;
  }
  return false;
}

}  // namespace launchgap::doctor
