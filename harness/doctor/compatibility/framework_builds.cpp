// Which build of a framework a requirement means, and the newest for a GPU.
#include <algorithm>

#include <fmt/format.h>

#include "harness/doctor/compatibility/framework_question.h"

namespace launchgap::doctor {
namespace {

/// Newest first; a wheel before a conda package, then the newer CUDA.
bool newer(const std::pair<Version, const BuildRow*>& a,
           const std::pair<Version, const BuildRow*>& b) {
  if (a.first != b.first) return a.first > b.first;
  if (a.second->package != b.second->package) return a.second->package > b.second->package;
  return a.second->cuda > b.second->cuda;
}

std::vector<std::pair<Version, const BuildRow*>> all_builds(std::string_view framework) {
  std::vector<std::pair<Version, const BuildRow*>> builds;
  for (const BuildRow& row : tables().builds) {
    if (row.framework != framework) continue;
    for (const Version& version : row.versions.versions()) builds.emplace_back(version, &row);
  }
  std::ranges::stable_sort(builds, newer);
  return builds;
}

bool driver_can(const BuildRow& build,
                Capability capability,
                const std::optional<Version>& driver) {
  const auto need = driver_needed_by(build.cuda);
  if (!need) return false;
  if (driver) {
    return driver_serves_toolkit(*driver, build.cuda).yes() &&
           !driver_knows_gpu(*driver, capability).no();
  }
  const ArchitectureRow* const life = life_of(capability);
  return life && (!life->last_driver_branch || need->minimum.major() <= *life->last_driver_branch);
}

NewestBuild described(const Version& version, const BuildRow& row, Capability capability) {
  NewestBuild build{.framework = row.framework,
                    .version = version,
                    .package = row.package,
                    .cuda = row.cuda,
                    .cudnn = row.cudnn,
                    .driver = *driver_needed_by(row.cuda, capability),
                    .cudnn_knows_gpu = {},
                    .recalled = row.source.recalled("compute_capabilities"),
                    .default_build = row.default_build,
                    .extra = row.extra};
  if (row.cudnn) build.cudnn_knows_gpu = cudnn_knows_gpu(*row.cudnn, row.cuda, capability);
  return build;
}

/// What names a package for pip or conda.
struct PipPackage {
  const std::string& framework;
  const std::string& kind;  // "wheel", "conda"
  const Version& cuda;
  bool default_build = false;
  const std::string& extra;
};

/// With quotes where a shell needs them.
std::string pip_pin(const std::string& package, const std::string& pin) {
  const std::string text = package + "==" + pin;
  return text.find_first_of("*[") == std::string::npos ? text : "'" + text + "'";
}

std::string install_torch(const PipPackage& package,
                          const Version& version,
                          const std::string& pin) {
  const std::string tag = fmt::format("cu{}{}", package.cuda.major(), package.cuda.minor());
  if (package.kind == "conda") {
    const bool renamed = version >= *Version::parse("1.13");
    return fmt::format("conda install pytorch={} {}={} -c pytorch -c {}",
                       version.text(),
                       renamed ? "pytorch-cuda" : "cudatoolkit",
                       package.cuda.text(),
                       renamed ? "nvidia" : "conda-forge");
  }
  if (package.default_build) return "pip install " + pip_pin("torch", pin);
  // Before 1.11 one page lists all wheels, and only the tag tells them apart.
  if (version < *Version::parse("1.11")) {
    return fmt::format(
        "pip install torch=={}+{} -f https://download.pytorch.org/whl/torch_stable.html",
        version.prefix(3),
        tag);
  }
  return fmt::format(
      "pip install {} --index-url https://download.pytorch.org/whl/{}", pip_pin("torch", pin), tag);
}

std::string install(const PipPackage& package, const Version& version, const std::string& pin) {
  if (package.framework == "torch") return install_torch(package, version, pin);
  std::string name = has_own_gpu_package(version) ? "tensorflow-gpu" : "tensorflow";
  if (!package.extra.empty()) name += "[" + package.extra + "]";
  return "pip install " + pip_pin(name, pin);
}

}  // namespace

std::string title_of(std::string_view framework) {
  return framework == "torch" ? "PyTorch" : "TensorFlow";
}

std::string NewestBuild::text() const {
  return fmt::format("{} {} with CUDA {}{}",
                     title_of(framework),
                     version.text(),
                     cuda.text(),
                     package == "conda" ? " (conda package)" : "");
}

std::string NewestBuild::command() const {
  return install({framework, package, cuda, default_build, extra},
                 version,
                 version.parts().size() < 3 ? version.text() + ".*" : version.text());
}

std::string install_command(const BuildRow& build, const Version& version, const std::string& pin) {
  return install(
      {build.framework, build.package, build.cuda, build.default_build, build.extra}, version, pin);
}

std::string replace_command(const BuildRow& build, const Version& version) {
  const std::string tag = fmt::format("cu{}{}", build.cuda.major(), build.cuda.minor());
  const bool listed = version < *Version::parse("1.11");
  return fmt::format("pip install torch=={}+{} {}",
                     version.prefix(3),
                     tag,
                     listed ? "-f https://download.pytorch.org/whl/torch_stable.html"
                            : "--index-url https://download.pytorch.org/whl/" + tag);
}

bool has_own_gpu_package(const Version& tensorflow) {
  return tensorflow < *Version::parse("1.15") || tensorflow.in_series(*Version::parse("2.0"));
}

std::optional<Version> version_for(const Requirement& requirement) {
  if (auto pinned = requirement.pinned()) return pinned;
  for (const auto& [version, row] : all_builds(requirement.framework)) {
    if (!requirement.allows(version)) continue;
    if (requirement.cuda && *requirement.cuda != row->cuda) continue;
    return version;
  }
  return std::nullopt;
}

std::vector<const BuildRow*> builds_for(const Requirement& requirement, const Version& version) {
  std::vector<const BuildRow*> builds;
  for (const BuildRow& row : tables().builds) {
    if (row.framework != requirement.framework || !row.versions.contains(version)) continue;
    if (requirement.cuda && (*requirement.cuda != row.cuda || row.package != "wheel")) continue;
    builds.push_back(&row);
  }
  std::ranges::stable_sort(builds, [](const BuildRow* a, const BuildRow* b) {
    if (a->default_build != b->default_build) return a->default_build;
    if (a->package != b->package) return a->package > b->package;
    return a->cuda > b->cuda;
  });
  return builds;
}

Newest newest_builds(std::string_view framework,
                     Capability capability,
                     const std::optional<Version>& driver,
                     const Requirement* among) {
  Newest newest;
  for (const auto& [version, row] : all_builds(framework)) {
    if (among && !among->allows(version)) continue;
    const CodeVerdict code = code_runs(row->code, row->cuda, capability);
    if (!code.verdict.yes()) continue;
    if (!driver_can(*row, capability, driver)) continue;
    NewestBuild build = described(version, *row, capability);
    build.compiled_at_start = code.compiled_at_start;
    if (build.recalled) {
      if (!newest.certain && !newest.possible) newest.possible = build;
      continue;
    }
    if (!newest.certain) newest.certain = build;
    if (!newest.certain->cudnn_knows_gpu.no() || newest.with_cudnn) break;
    if (build.cudnn_knows_gpu.yes()) newest.with_cudnn = build;
  }
  return newest;
}

}  // namespace launchgap::doctor
