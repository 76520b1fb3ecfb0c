// The compatibility tables of data/, read once. docs/compatibility-tables.md explains each.
#pragma once

#include <compare>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/csv_table.h"
#include "harness/doctor/version.h"

namespace launchgap::doctor {

// --- What stands in the cells of the tables: capabilities, sets of versions, sources ---

/// A GPU's compute capability, 3.5.
struct Capability {
  int major = 0;
  int minor = 0;

  /// "3.5", "12.0", "sm_90", "sm_120"; nothing for anything else.
  static std::optional<Capability> parse(std::string_view text);
  std::string text() const;

  friend auto operator<=>(const Capability&, const Capability&) = default;
};

/// Versions as a table names them. Items are separated by blanks: "11.2" (and all of 11.2.x),
/// "2.5-2.11" (both ends included), "12.x", "9.11+", ">=2.8", "<=1.12".
class VersionSet {
 public:
  /// Throws Error for what is no set.
  static VersionSet parse(std::string_view text);

  bool contains(const Version& version) const;
  bool overlaps(const VersionSet& other) const;
  const std::string& text() const { return text_; }
  /// The versions that the items name one by one, oldest first: 2.5, 2.6, … 2.11. Of an item
  /// without an upper end only the lower one.
  std::vector<Version> versions() const;

 private:
  struct VersionRange {
    Version first;                 // as it was written
    std::optional<Version> last;   // as it was written, still inside; nothing: no upper end
    std::optional<Version> above;  // the first version that is no longer inside
  };
  static VersionRange parse_item(std::string_view text);

  std::string text_;
  std::vector<VersionRange> items_;
};

/// Where a row comes from. Parts are separated by "; ". A part "recalled…" says that the row was
/// not confirmed, "recalled: min_cc cuda" that only these columns were not.
struct Source {
  std::string text;

  bool recalled(std::string_view column) const;
};

// --- Their rows ---

struct GpuRow {  // generations.csv
  std::string name;
  Capability capability;
  int sm_count = 0;
  double boost_mhz = 0;
  Source source;
};

struct PciRange {  // pci_devices.csv: device ids of vendor 10de, both ends included
  int first = 0;
  int last = 0;
  std::string chip;
  std::string architecture;
  Capability capability;
  Source source;
};

struct PciGpu {  // pci_gpus.csv
  int id = 0;
  std::string gpu;  // a row of generations.csv
  Source source;
};

struct GpuName {  // gpu_names.csv: names of GPUs that are not in generations.csv
  std::string name;
  Capability capability;
  Source source;
};

struct ToolkitRow {  // toolkit_driver.csv
  Version toolkit;
  Version bundled_driver;                 // Linux
  std::optional<Version> minimum_driver;  // by minor-version compatibility; nothing before 11
  Source source;
};

struct ArchitectureRow {  // architecture_life.csv
  std::string architecture;
  Capability capability;
  Version first_toolkit;
  std::optional<Version> last_toolkit;    // nothing: still supported
  std::optional<int> last_driver_branch;  // 470; nothing: still supported
  bool driver_branch_applies = true;      // not to Tegra, whose driver comes with the board
  Source source;
};

struct CudnnRow {  // cudnn_support.csv
  VersionSet cudnn;
  VersionSet cuda;
  std::optional<Capability> minimum;
  std::optional<Capability> maximum;
  std::optional<Version> minimum_driver;
  std::string note;
  Source source;
};

enum class Ptx { none, some, unknown };

/// What a build of a framework has code for.
struct BuildCode {
  std::vector<Capability> machine_code;  // empty: not known
  std::optional<Capability> at_least;    // only the minimum is known
  Ptx ptx = Ptx::unknown;
  std::optional<Capability> ptx_target;  // nothing with Ptx::some: not known of which
};

struct BuildRow {         // tensorflow_builds.csv, pytorch_builds.csv
  std::string framework;  // "tensorflow", "torch"
  VersionSet versions;
  std::string package;  // "wheel", "conda"
  Version cuda;         // what it was built with
  std::optional<Version> cudnn;
  BuildCode code;
  bool brings_libraries = false;  // CUDA and cuDNN come with it, the system's are not used
  std::string extra;              // with this extra of pip they come with it: "and-cuda"
  bool default_build = false;     // what pip installs when no CUDA is named
  std::string note;
  Source source;
};

struct SonameRow {      // toolkit_sonames.csv, cudnn_sonames.csv
  VersionSet versions;  // of the toolkit, of cuDNN
  std::string name;     // "cublas"
  std::string soname;   // "libcublas.so.11"
  Source source;
};

struct FrameworkLibraryRow {  // framework_libraries.csv
  std::string framework;
  VersionSet versions;
  std::string name;
  bool silent = false;  // when it is missing: work on the CPU, else the import fails
  Source source;
};

struct Tables {
  std::vector<GpuRow> gpus;
  std::vector<PciRange> pci_ranges;
  std::vector<PciGpu> pci_gpus;
  std::vector<GpuName> gpu_names;
  std::vector<ToolkitRow> toolkits;  // oldest first
  std::vector<ArchitectureRow> architectures;
  std::vector<CudnnRow> cudnn;
  std::vector<BuildRow> builds;
  std::vector<SonameRow> toolkit_sonames;
  std::vector<SonameRow> cudnn_sonames;
  std::vector<FrameworkLibraryRow> framework_libraries;
  std::string made;  // "2026-11-22": when they were last compared with their sources

  /// `text_of` gives a table by its file name. Throws Error that names table, row and column for
  /// anything that does not read.
  static Tables parse(const std::function<std::string_view(std::string_view)>& text_of);
};

/// The tables in this binary.
const Tables& tables();

}  // namespace launchgap::doctor
