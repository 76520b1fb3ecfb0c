#include "harness/doctor/programs/program_causes.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "harness/doctor/version.h"

namespace launchgap::doctor {
namespace fs = std::filesystem;

namespace {

/// In the order in which they are needed: the first one that is missing is the cause.
constexpr std::array kNeeded = {"libcuda",
                                "libcudart",
                                "libcublas",
                                "libcublasLt",
                                "libcudnn",
                                "libcufft",
                                "libcurand",
                                "libcusolver",
                                "libcusparse",
                                "libnccl"};
/// Frameworks look whether they are there and do without.
constexpr std::array kOptional = {"libcupti",
                                  "libnvidia-ml",
                                  "libnvinfer",
                                  "libnvinfer_plugin",
                                  "libnvToolsExt",
                                  "libnvblas",
                                  "libcutensor",
                                  "libcufile",
                                  "libcudadebugger",
                                  "libnvshmem_host"};

std::size_t rank_of(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(kNeeded, library_stem(name)) - kNeeded.begin());
}

bool is_taken(const LoaderSearch& search) {
  return !search.found.empty() && !search.unloaded;
}

/// "8.0.5" of "/opt/libcudnn.so.8" where that is a link to libcudnn.so.8.0.5.
std::optional<Version> version_of(const std::string& path) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  const std::string name = (failed ? fs::path(path) : real).filename().string();
  const std::size_t at = name.find(".so.");
  return at == std::string::npos ? std::nullopt
                                 : Version::parse(std::string_view(name).substr(at + 4));
}

/// Whether it is what the loader takes for everybody.
bool is_systems_own(const TakenLibrary& taken,
                    const LoaderCache& cache,
                    const SystemFiles& system) {
  using Rule = PathOrigin::Rule;
  if (taken.origin.kind == Rule::cache || taken.origin.kind == Rule::default_folder) return true;
  if (taken.origin.kind != Rule::unknown) return false;
  std::error_code failed;
  return std::ranges::any_of(cache.paths(taken.name), [&](const std::string& path) {
    return fs::equivalent(system.at(path), taken.path, failed);
  });
}

}  // namespace

bool has_library(const ProcessFacts& process, std::string_view stem) {
  return std::ranges::any_of(
             process.libraries,
             [&](const MappedLibrary& library) { return library_stem(library.path) == stem; }) ||
         std::ranges::any_of(process.searches, [&](const LoaderSearch& search) {
           return is_taken(search) && library_stem(search.wanted) == stem;
         });
}

std::optional<MissingLibrary> missing_library(const ProgramFacts& facts) {
  std::optional<MissingLibrary> cause;
  for (const ProcessFacts& process : facts.processes) {
    for (const LoaderSearch& search : process.searches) {
      const std::string stem = library_stem(search.wanted);
      const bool optional =
          search.dlopened && std::ranges::find(kOptional, stem) != kOptional.end();
      if (!search.found.empty() || optional || has_library(process, stem)) continue;
      if (!cause || rank_of(search.wanted) < rank_of(cause->search->wanted))
        cause = MissingLibrary{&process, &search};
    }
  }
  return cause;
}

std::vector<TakenLibrary> taken_libraries(const ProgramFacts& facts) {
  std::vector<TakenLibrary> all;
  std::set<std::string> seen;
  for (const ProcessFacts& process : facts.processes) {
    for (const LoaderSearch& search : process.searches) {
      if (!is_taken(search) || !is_cuda_library(search.wanted)) continue;
      std::error_code failed;
      const fs::path real = fs::canonical(search.found, failed);
      seen.insert(failed ? search.found : real.string());
      if (seen.insert(search.wanted + "\n" + search.found).second)
        all.push_back({&process,
                       search.wanted.substr(search.wanted.rfind('/') + 1),
                       search.found,
                       search.origin});
    }
    for (const MappedLibrary& library : process.libraries) {
      if (seen.insert(library.path).second)
        all.push_back({&process, library.name, library.path, library.origin});
    }
  }
  std::ranges::stable_sort(all, {}, [](const TakenLibrary& taken) { return rank_of(taken.name); });
  return all;
}

std::string variable(const ProcessFacts& process, const std::string& name) {
  return variable_in(process.environment, name);
}

std::optional<ShadowedLibrary> shadowed_library(const ProgramFacts& facts,
                                                const Surroundings& surroundings) {
  for (const TakenLibrary& taken : taken_libraries(facts)) {
    const bool driver = library_stem(taken.name) == "libcuda";
    if (driver && !is_stub(taken.path) &&
        is_systems_own(taken, surroundings.cache, surroundings.system))
      continue;
    std::vector<LibraryCopy> others = other_copies(driver ? "libcuda.so.1" : taken.name,
                                                   taken.path,
                                                   variable(*taken.process, "LD_LIBRARY_PATH"),
                                                   surroundings.cache,
                                                   surroundings.system);
    std::erase_if(others, [](const LibraryCopy& copy) { return is_stub(copy.path); });
    const std::optional<LibraryCopy> first =
        others.empty() ? std::nullopt : std::optional(others.front());
    if (driver && (is_stub(taken.path) || first)) return ShadowedLibrary{taken, first};
    if (driver || !first) continue;
    const auto version = version_of(taken.path), other = version_of(first->path);
    if (version && other && *version < *other) return ShadowedLibrary{taken, first};
  }
  return std::nullopt;
}

bool is_basic(std::string_view name) {
  return rank_of(name) < kNeeded.size();
}

}  // namespace launchgap::doctor
