#include "harness/doctor/compatibility/python_packages.h"

#include <algorithm>
#include <regex>
#include <sys/stat.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/printable.h"
#include "harness/core/text.h"

extern char** environ;

namespace launchgap::doctor {
namespace {

constexpr std::size_t kMaxPackages = 512;
constexpr std::size_t kMaxMetadata = 64 << 10;

/// Several packages that bring one module: only one of them can be imported.
struct Family {
  std::string_view module;
  std::vector<std::string_view> packages;
};

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"tensorflow",
       {"tensorflow",
        "tensorflow-gpu",
        "tensorflow-cpu",
        "tf-nightly",
        "tf-nightly-gpu",
        "tf-nightly-cpu",
        "intel-tensorflow",
        "tensorflow-rocm"}},
      {"torch", {"torch"}},
      {"jax", {"jax"}},
      {"jaxlib", {"jaxlib"}},
      {"cupy", {"cupy"}},  // and cupy-cuda12x and the like
  };
  return all;
}

bool is_of(const Family& family, std::string_view package) {
  return std::ranges::find(family.packages, package) != family.packages.end() ||
         (family.module == "cupy" && package.starts_with("cupy-"));
}

bool is_of_interest(std::string_view package) {
  return package.starts_with("nvidia-") || package.starts_with("jax-cuda") ||
         std::ranges::any_of(families(), [&](const Family& f) { return is_of(f, package); });
}

/// The value of a header of METADATA.
std::string header(std::string_view metadata, std::string_view name) {
  return printable(header_field(metadata, name).value_or(""), 100);
}

/// What a pattern finds in the short lines of a file of Python code, which is read as text.
std::string found_in(const SystemFiles& system,
                     const std::string& file,
                     const std::regex& pattern) {
  constexpr std::size_t kLongestLine = 2000;
  const std::string text = system.read(file, kMaxMetadata).value_or("");
  for (const std::string_view whole : parts_of(text, "\n")) {
    std::smatch match;
    const std::string line(whole.substr(0, kLongestLine));
    if (std::regex_search(line, match, pattern)) return match[1].matched ? match[1].str() : "none";
  }
  return "";
}

std::string cuda_of_torch(const SystemFiles& system, const std::string& folder) {
  static const std::regex pattern(
      R"(^cuda(?:: ?Optional\[str\])? = (?:['"]([0-9]{1,3}\.[0-9]{1,3}(?:\.[0-9]{1,3})?)['"]|None)\s*$)");
  return found_in(system, folder + "/torch/version.py", pattern);
}

/// "9.26.0" of "Requires-Dist: nvidia-cudnn-cu13==9.26.0.12; platform_system == "Linux"".
std::string cudnn_of_metadata(const SystemFiles& system, const std::string& file) {
  static const std::regex pattern(
      R"(^Requires-Dist: *nvidia[-_.]cudnn(?:[-_.]cu[0-9]{1,3})? *\(?={2,3} *([0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})[.0-9]*(?:[^0-9.].*)?$)",
      std::regex::icase);
  return found_in(system, file, pattern);
}

std::string cuda_of_tensorflow(const SystemFiles& system, const std::string& folder) {
  static const std::regex pattern(
      R"(['"]cuda_version['"] ?[,:] ?['"]([0-9]{1,3}(?:\.[0-9]{1,3})?)['"])");
  static const std::regex cpu(R"(['"]is_cuda_build['"] ?[,:] ?False)");
  const std::string file = folder + "/tensorflow/python/platform/build_info.py";
  const std::string version = found_in(system, file, pattern);
  return version.empty() ? found_in(system, file, cpu) : version;
}

void read_what_it_brings(const SystemFiles& system,
                         const std::string& folder,
                         const std::string& metadata_file,
                         PythonPackage& package) {
  const std::string name = normalised_name(package.name);
  if (name == "torch") {
    package.cuda = cuda_of_torch(system, folder);
    package.cudnn = cudnn_of_metadata(system, metadata_file);
    package.brings_cuda = system.exists(folder + "/torch/lib/libtorch_cuda.so");
  } else if (is_of(families().front(), name)) {
    package.cuda = cuda_of_tensorflow(system, folder);
    package.brings_cuda = !package.cuda.empty() && package.cuda != "none";
  } else if (name.starts_with("nvidia-")) {
    // Which of nvidia/*/lib is this package's, only its list of files would tell.
    for (const std::string& part : system.entries(folder + "/nvidia"))
      package.brings_cuda =
          package.brings_cuda || system.exists(folder + "/nvidia/" + part + "/lib");
  } else {
    package.brings_cuda = name.starts_with("cupy-cuda") || name.starts_with("jax-cuda");
  }
}

/// The package whose metadata is this entry of a folder, if it is of interest.
std::optional<PythonPackage> package_of(const SystemFiles& system,
                                        const std::string& folder,
                                        const std::string& entry) {
  const bool dist = entry.ends_with(".dist-info"), egg = entry.ends_with(".egg-info");
  if (!dist && !egg) return std::nullopt;
  // "tensorflow_gpu-2.4.0.dist-info", "torch-1.0-py3.7.egg-info"
  const std::string stem = entry.substr(0, entry.rfind('.'));
  const std::size_t dash = stem.find('-');
  if (!is_of_interest(normalised_name(stem.substr(0, dash)))) return std::nullopt;

  const std::string path = folder + "/" + entry;
  auto metadata = system.read(path + (dist ? "/METADATA" : "/PKG-INFO"), kMaxMetadata);
  if (!metadata && egg) metadata = system.read(path, kMaxMetadata);
  PythonPackage package;
  package.name = header(metadata.value_or(""), "Name");
  package.version = header(metadata.value_or(""), "Version");
  package.location = printable(folder);
  // Metadata that is damaged, or of something else than its name says, does not count.
  if (normalised_name(package.name) != normalised_name(stem.substr(0, dash)))
    package.name = printable(stem.substr(0, dash), 100);
  if (package.version.empty() && dash != std::string::npos)
    package.version = printable(stem.substr(dash + 1, stem.find("-py", dash) - dash - 1), 100);
  read_what_it_brings(system, folder, path + (dist ? "/METADATA" : "/PKG-INFO"), package);
  return package;
}

std::string shown(const PythonPackage& package) {
  return fmt::format("{} {} in {}", package.name, package.version, package.location);
}

Finding installed_twice(const ActivePython& python,
                        const Family& family,
                        const std::vector<const PythonPackage*>& packages) {
  const PythonPackage& first = *packages.front();
  const bool side_by_side = std::ranges::any_of(packages, [&](const PythonPackage* other) {
    return other != &first && other->location == first.location;
  });
  Finding finding{.code = "framework-installed-twice",
                  .severity = Severity::distorts,
                  .subject = std::string(family.module),
                  .sentence = "",
                  .evidence = {},
                  .remedy = "",
                  .symptoms = {}};
  if (side_by_side) {
    finding.sentence = fmt::format(
        "Several packages share {}/{}: `import {}` gets a mix of their files, those of the package "
        "installed last foremost.",
        first.location,
        family.module,
        family.module);
  } else {
    finding.sentence = fmt::format("{} is installed {} times: `import {}` takes {} {} of {}.",
                                   family.module,
                                   packages.size(),
                                   family.module,
                                   first.name,
                                   first.version,
                                   first.location);
  }
  for (const PythonPackage* package : packages) finding.evidence.push_back(shown(*package));
  std::vector<std::string> names;
  for (const PythonPackage* package : packages) {
    if (std::ranges::find(names, package->name) == names.end()) names.push_back(package->name);
  }
  finding.remedy = fmt::format(
      "Uninstall all of them and install the one that is meant: {} -m pip uninstall {} (once for "
      "each), then {} -m pip install {}",
      printable(python.executable),
      fmt::join(names, " "),
      printable(python.executable),
      first.name);
  return finding;
}

}  // namespace

std::string normalised_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (separator && !out.empty() && out.back() == '-') continue;
    out += separator ? '-' : (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

ActivePython active_python(const SystemFiles& system,
                           const std::map<std::string, std::string>& environment) {
  ActivePython python{find_python(system, environment), {}};
  python.unknown = printable(python.unknown, 1000);
  for (const std::string& folder : python.folders) {
    for (const std::string& entry : system.entries(folder)) {
      if (python.packages.size() >= kMaxPackages) return python;
      if (auto package = package_of(system, folder, entry))
        python.packages.push_back(*std::move(package));
    }
  }
  return python;
}

std::vector<Finding> python_findings(const ActivePython& python) {
  std::vector<Finding> findings;
  for (const Family& family : families()) {
    std::vector<const PythonPackage*> packages;
    for (const PythonPackage& package : python.packages) {
      if (is_of(family, normalised_name(package.name))) packages.push_back(&package);
    }
    if (packages.size() > 1) findings.push_back(installed_twice(python, family, packages));
  }
  return findings;
}

}  // namespace launchgap::doctor
