// Which build is meant, what it needs, and what there is of it.
#include "harness/doctor/compatibility/framework_question.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/core/printable.h"

namespace launchgap::doctor {

std::string tag_of(const Version& cuda) {
  return fmt::format("+cu{}{}", cuda.major(), cuda.minor());
}

void FrameworkQuestion::choose_installed() {
  const auto is_same = [&](const InstalledPackage& package) {
    try {
      return Requirement::parse(package.name).framework == requirement_.framework;
    } catch (const UsageError&) {
      return false;
    }
  };
  const auto found = std::ranges::find_if(installation_.installed, is_same);
  if (found == installation_.installed.end()) {
    const auto newest = version_for(requirement_);
    answer_.first.push_back(
        fmt::format("{} is not installed{}{}; taken: the newest in the tables, {}",
                    requirement_.package,
                    installation_.python.empty() ? "" : " in ",
                    printable(installation_.python, 200),
                    newest ? newest->text() : "none"));
    return;
  }
  installed_ = true;
  own_ = &*found;
  answer_.notes.push_back(fmt::format("{} {} is installed in {}",
                                      found->name,
                                      printable(found->version, 60),
                                      printable(found->location, 200)));
  try {
    const std::string asked = requirement_.extra;
    requirement_ = Requirement::parse(found->name + "==" + found->version);
    requirement_.extra = asked;
  } catch (const UsageError&) {
    answer_.subject = fmt::format("{} {}", found->name, printable(found->version, 60));
    unknown_version_ =
        Cause{"framework-version-unknown",
              Severity::note,
              fmt::format("{} is no release that a table could have", answer_.subject),
              {fmt::format("installed in {}", printable(found->location, 200))},
              "ask for a released version, for example --for torch==2.8+cu126",
              {}};
  }
}

void FrameworkQuestion::choose_build() {
  const bool bare = requirement_.clauses.empty() && !requirement_.cpu_only;
  answer_.asked = requirement_.text;
  if (bare) choose_installed();
  if (!unknown_version_) version_ = version_for(requirement_);
  if (answer_.subject.empty()) {
    const std::string tag = requirement_.cuda                  ? tag_of(*requirement_.cuda)
                            : requirement_.cpu_only && torch() ? "+cpu"
                                                               : "";
    answer_.subject = fmt::format(
        "{} {}{}",
        requirement_.package,
        version_ ? version_->text() : requirement_.text.substr(requirement_.package.size()),
        tag);
  }
  cpu_only_ = requirement_.cpu_only;
  choose_package();
  if (!unknown_version_ && !cpu_only_) choose_row();
}

/// Where pip's tensorflow had no GPU, the answer is for tensorflow-gpu, unless the former is
/// installed.
void FrameworkQuestion::choose_package() {
  if (torch() || !version_ || requirement_.package != "tensorflow" || cpu_only_) return;
  if (!has_own_gpu_package(*version_)) return;
  if (installed_) {
    cpu_only_ = true;
    return;
  }
  other_package_ = answer_.subject;
  answer_.subject = "tensorflow-gpu " + version_->text();
  answer_.first.push_back(
      fmt::format("{} uses the CPU: the package tensorflow has no GPU code {}. The rest of the "
                  "answer is for tensorflow-gpu=={}",
                  other_package_,
                  version_->in_series(*Version::parse("2.0")) ? "at 2.0" : "before 1.15",
                  version_->text()));
}

void FrameworkQuestion::choose_row() {
  std::vector<const BuildRow*> rows;
  if (version_) rows = builds_for(requirement_, *version_);
  if (!rows.empty()) {
    answer_.build = *rows.front();
    std::vector<std::string> others;
    for (const BuildRow* row : rows) {
      if (row != rows.front() && row->package == "wheel") others.push_back(tag_of(row->cuda));
    }
    if (!requirement_.cuda && torch()) {
      answer_.notes.push_back(fmt::format(
          "taken to be the build {}{}{}",
          tag_of(answer_.build->cuda),
          answer_.build->default_build ? ", pip's default" : "",
          others.empty() ? "" : fmt::format("; there is {} as well", fmt::join(others, ", "))));
    }
    return;
  }
  unknown_version_ =
      Cause{"framework-version-unknown",
            Severity::note,
            fmt::format("{} is in no table: its CUDA and its GPUs are not known", answer_.subject),
            {},
            "",
            {}};
  Requirement any = requirement_;
  any.cuda.reset();
  if (version_ && requirement_.cuda) {
    for (const BuildRow* row : builds_for(any, *version_)) {
      if (row->package == "wheel")
        unknown_version_->evidence.push_back(
            fmt::format("known of this version: {}", tag_of(row->cuda)));
    }
  }
  any.clauses.clear();
  if (const auto newest = version_for(any)) {
    unknown_version_->evidence.push_back(
        fmt::format("the newest in the tables is {} {}", title_of(any.framework), newest->text()));
  }
  unknown_version_->remedy =
      torch() ? "ask the build itself: python -c 'import torch; print(torch.cuda.get_arch_list())'"
              : "ask the build itself: python -c 'import tensorflow as tf; "
                "print(tf.sysconfig.get_build_info())'";
  // The rules about the toolkit that its tag names, or its own files, still hold.
  std::optional<Version> cuda = requirement_.cuda;
  const InstalledPackage* const own = torch() ? own_ : nullptr;
  if (own && own->cuda == "none") {
    unknown_version_->evidence.push_back(fmt::format(
        "its own files in {} say that it was built without CUDA", printable(own->location, 200)));
  } else if (own && !own->cuda.empty()) {
    if (!cuda) cuda = Version::parse(own->cuda);
    unknown_version_->evidence.push_back(
        fmt::format("its own files in {} name CUDA {}{}",
                    printable(own->location, 200),
                    own->cuda,
                    own->cudnn.empty() ? "" : fmt::format(" and require cuDNN {}", own->cudnn)));
  }
  if (!cuda || !toolkit_exists(*cuda).yes()) return;
  BuildRow row = *builds_for(any, *version_for(any)).front();
  row.versions = VersionSet::parse(version_ ? version_->text() : "0");
  row.cuda = *cuda;
  row.cudnn = own ? Version::parse(own->cudnn) : std::nullopt;
  row.code = {};
  row.default_build = false;
  if (own) row.source.text = fmt::format("the metadata of {} in {}", own->name, own->location);
  answer_.build = row;
}

std::string FrameworkQuestion::driver_text() const {
  if (installation_.driver) return installation_.driver->text();
  if (installation_.driver_cuda)
    return fmt::format("for CUDA {}", installation_.driver_cuda->text());
  return no_driver() ? "none" : "not known";
}

/// What the driver says of itself comes before its version: libcuda can be of a compat package.
Verdict FrameworkQuestion::driver_verdict() const {
  if (!answer_.build) return {};
  const Version& cuda = answer_.build->cuda;
  if (installation_.driver_cuda && *installation_.driver_cuda >= *Version::parse(cuda.prefix(2))) {
    return {
        Truth::yes,
        fmt::format("the driver says that it can do CUDA {}", installation_.driver_cuda->text())};
  }
  if (installation_.driver) return driver_serves_toolkit(*installation_.driver, cuda);
  if (!installation_.driver_cuda) return {};
  // Within a major from 11 on minor-version compatibility may help; that needs the release.
  const bool older = installation_.driver_cuda->major() < cuda.major() || cuda.major() < 11;
  return {older ? Truth::no : Truth::unknown,
          fmt::format("the driver can do CUDA {} only", installation_.driver_cuda->text())};
}

/// What follows from the GPUs' answers for the lines above them.
void FrameworkQuestion::settle_needs() {
  bool driver_open = false;
  std::vector<std::string> libraries;
  for (NeedRow& row : answer_.needs) {
    if (row.what != "compute capability") {
      const bool open = row.met == Truth::unknown;
      if (open && row.what == "driver") driver_open = true;
      if (open && row.what != "driver") libraries.push_back(row.what + " " + row.need);
      continue;
    }
    std::size_t yes = 0;
    for (const GpuAnswer& gpu : answer_.gpus) {
      if (gpu.has_code == Truth::no) row.met = Truth::no;
      yes += gpu.has_code == Truth::yes ? 1 : 0;
    }
    if (yes > 0 && yes == answer_.gpus.size()) row.met = Truth::yes;
  }
  for (GpuAnswer& gpu : answer_.gpus) {
    gpu.once = libraries;
    const auto need = driver_open && gpu.gpu.capability
                          ? driver_needed_by(answer_.build->cuda, *gpu.gpu.capability)
                          : std::nullopt;
    if (need) gpu.once.push_back("a driver " + need_text(*need, gpu.last_driver_branch));
    gpu.conditional = !gpu.once.empty();
  }
}

void FrameworkQuestion::describe_needs() {
  if (!answer_.build) return;
  const BuildRow& build = *answer_.build;
  if (const auto [need, last] = needed_driver(); need) {
    answer_.needs.push_back({"driver",
                             need_text(*need, last),
                             driver_text(),
                             no_driver() ? Truth::no : driver_verdict().truth});
  }
  describe_libraries();
  describe_cudnn();
  std::string code;
  for (const Capability c : build.code.machine_code) code += (code.empty() ? "" : " ") + c.text();
  if (build.code.at_least) code = build.code.at_least->text() + " or higher";
  if (build.code.ptx_target) code += fmt::format(", PTX {}", build.code.ptx_target->text());
  std::vector<std::string> capabilities;
  for (const InstalledGpu& gpu : installation_.gpus) {
    const std::string one = gpu.capability ? gpu.capability->text() : "?";
    if (std::ranges::find(capabilities, one) == capabilities.end()) capabilities.push_back(one);
  }
  const std::string have = fmt::format("{}", fmt::join(capabilities, " "));
  answer_.needs.push_back({"compute capability",
                           code.empty() ? "not known" : code,
                           !have.empty()              ? have
                           : installation_.gpus_known ? "no GPU"
                                                      : "not known",
                           Truth::unknown});
}

void FrameworkQuestion::describe_libraries() {
  const BuildRow& build = *answer_.build;
  if (!uses_system_libraries()) {
    answer_.needs.push_back({"CUDA", build.cuda.text(), "comes with it", Truth::yes});
    return;
  }
  const bool cuda_known = installation_.libraries_known || !installation_.toolkits.empty();
  const bool cudnn_known = installation_.libraries_known || installation_.cudnn;
  std::vector<std::string> have = installation_.sonames;
  for (const Version& toolkit : installation_.toolkits) {
    for (const SonameRow& row : tables().toolkit_sonames) {
      if (row.versions.contains(toolkit)) have.push_back(row.soname);
    }
  }
  if (installation_.cudnn) have.push_back(soname_of_cudnn(*installation_.cudnn).value_or(""));
  for (const FrameworkLibraryRow& row : tables().framework_libraries) {
    if (row.framework != build.framework || !version_ || !row.versions.contains(*version_))
      continue;
    if (row.name == "cuda") continue;  // the driver's
    missing_is_silent_ = row.silent;
    const bool cudnn = row.name == "cudnn";
    const auto soname = cudnn ? (build.cudnn ? soname_of_cudnn(*build.cudnn) : std::nullopt)
                              : soname_in_toolkit(build.cuda, row.name);
    if (!soname) continue;
    answer_.loads.push_back(*soname);
    const bool known = cudnn ? cudnn_known : cuda_known;
    if (known && std::ranges::find(have, *soname) == have.end()) answer_.missing.push_back(*soname);
  }
  std::vector<std::string> toolkits;
  for (const Version& toolkit : installation_.toolkits) toolkits.push_back(toolkit.text());
  const auto of_cuda = [](std::vector<std::string> names) {
    std::erase_if(names, [](const std::string& name) { return name.starts_with("libcudnn"); });
    return names;
  };
  const std::vector<std::string> missing = of_cuda(answer_.missing);
  const std::string found =
      !toolkits.empty() ? fmt::format("{}", fmt::join(toolkits, ", "))
      : !cuda_known     ? "not known"
      : missing.empty() ? "all names are there"
      : missing.size() == of_cuda(answer_.loads).size() ? "none of its libraries"
      : missing.size() == 1
          ? "no " + missing.front()
          : fmt::format(
                "{} of {} names are missing", missing.size(), of_cuda(answer_.loads).size());
  answer_.needs.push_back({"CUDA",
                           build.cuda.text(),
                           found,
                           !missing.empty() ? Truth::no
                           : cuda_known     ? Truth::yes
                                            : Truth::unknown});
}

namespace {

/// TensorFlow up to 1.4 wanted the very same minor.
bool wants_own_cudnn(const std::optional<Version>& tensorflow) {
  return tensorflow && *tensorflow < *Version::parse("1.5");
}

}  // namespace

Verdict FrameworkQuestion::cudnn_verdict() const {
  if (!uses_system_libraries() || !installation_.cudnn || !answer_.build->cudnn) return {};
  const Version& compiled = *answer_.build->cudnn;
  if (wants_own_cudnn(version_) && installation_.cudnn->prefix(2) != compiled.prefix(2)) {
    return {Truth::no,
            fmt::format("TensorFlow up to 1.4 needs cuDNN {} itself", compiled.prefix(2))};
  }
  return cudnn_serves(*installation_.cudnn, compiled);
}

void FrameworkQuestion::describe_cudnn() {
  const auto& cudnn = answer_.build->cudnn;
  if (!cudnn) return;
  if (!uses_system_libraries()) {
    answer_.needs.push_back({"cuDNN", cudnn->text(), "comes with it", Truth::yes});
    return;
  }
  std::string have = installation_.libraries_known ? "none" : "not known";
  const auto soname = soname_of_cudnn(*cudnn);
  if (soname && std::ranges::find(installation_.sonames, *soname) != installation_.sonames.end())
    have = *soname;
  if (installation_.cudnn) have = installation_.cudnn->text();
  const bool missing =
      soname && std::ranges::find(answer_.missing, *soname) != answer_.missing.end();
  // Of 8.0 every 8.x will do.
  const std::string need = wants_own_cudnn(version_) ? cudnn->prefix(2)
                           : cudnn->minor() == 0
                               ? fmt::format("{}.x", cudnn->major())
                               : fmt::format("{} or newer {}.x", cudnn->text(), cudnn->major());
  answer_.needs.push_back({"cuDNN", need, have, missing ? Truth::no : cudnn_verdict().truth});
}

}  // namespace launchgap::doctor
