// Which build is meant, what it needs, and what there is of it.
#include "harness/doctor/frameworks/question.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/doctor/printable.h"

namespace launchgap::doctor {

std::string tag_of(const Version& cuda) {
  return fmt::format("+cu{}{}", cuda.major(), cuda.minor());
}

void Question::choose_installed() {
  const auto is_same = [&](const InstalledPackage& package) {
    try {
      return Requirement::parse(package.name).framework == requirement_.framework;
    } catch (const UsageError&) {
      return false;
    }
  };
  const auto found = std::ranges::find_if(setup_.installed, is_same);
  if (found == setup_.installed.end()) return;
  installed_ = true;
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

void Question::choose_build() {
  const bool bare = requirement_.clauses.empty() && !requirement_.cpu_only;
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
  const bool separate =
      !torch() && version_ && requirement_.package == "tensorflow" &&
      (*version_ < *Version::parse("1.15") || version_->in_series(*Version::parse("2.0")));
  if (separate && installed_) {
    cpu_only_ = true;
  } else if (separate) {
    answer_.notes.emplace_back(
        "before 1.15, and at 2.0, pip's tensorflow has no GPU; this answer is for tensorflow-gpu");
  }
  if (!unknown_version_ && !cpu_only_) choose_row();
}

void Question::choose_row() {
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
            fmt::format("{} is in no table: what it was built with and for is not known",
                        answer_.subject),
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
  // The rules about the toolkit that its tag names still hold.
  if (requirement_.cuda && toolkit_exists(*requirement_.cuda).yes()) {
    BuildRow row = *builds_for(any, *version_for(any)).front();
    row.versions = VersionSet::parse(version_ ? version_->text() : "0");
    row.cuda = *requirement_.cuda;
    row.cudnn.reset();
    row.code = {};
    row.default_build = false;
    answer_.build = row;
  }
}

std::string Question::driver_text() const {
  if (setup_.driver) return setup_.driver->text();
  if (setup_.driver_cuda) return fmt::format("for CUDA {}", setup_.driver_cuda->text());
  return no_driver() ? "none" : "not known";
}

/// What the driver says of itself comes before its version: libcuda can be of a compat package.
Verdict Question::driver_verdict() const {
  if (!answer_.build) return {};
  const Version& cuda = answer_.build->cuda;
  if (setup_.driver_cuda && *setup_.driver_cuda >= *Version::parse(cuda.prefix(2))) {
    return {Truth::yes,
            fmt::format("the driver says that it can do CUDA {}", setup_.driver_cuda->text()),
            "",
            false};
  }
  if (setup_.driver) return driver_serves_toolkit(*setup_.driver, cuda);
  if (!setup_.driver_cuda) return {};
  // Within a major from 11 on minor-version compatibility may help; that needs the release.
  const bool older = setup_.driver_cuda->major() < cuda.major() || cuda.major() < 11;
  return {older ? Truth::no : Truth::unknown,
          fmt::format("the driver can do CUDA {} only", setup_.driver_cuda->text()),
          "",
          false};
}

/// What follows from the GPUs' answers for the lines above them.
void Question::settle_needs() {
  bool unsettled = false;
  for (NeedRow& row : answer_.needs) {
    if (row.what != "compute capability") {
      unsettled = unsettled || row.met == Truth::unknown;
      continue;
    }
    std::size_t yes = 0;
    for (const GpuAnswer& gpu : answer_.gpus) {
      if (gpu.has_code == Truth::no) row.met = Truth::no;
      yes += gpu.has_code == Truth::yes ? 1 : 0;
    }
    if (yes > 0 && yes == answer_.gpus.size()) row.met = Truth::yes;
  }
  for (GpuAnswer& gpu : answer_.gpus) gpu.conditional = unsettled;
}

void Question::describe_needs() {
  if (!answer_.build) return;
  const BuildRow& build = *answer_.build;
  if (const auto need = driver_needed_by(build.cuda)) {
    answer_.needs.push_back({"driver",
                             need_text(*need),
                             driver_text(),
                             no_driver() ? Truth::no : driver_verdict().truth});
  }
  describe_libraries();
  describe_cudnn();
  std::string code;
  for (const Capability c : build.code.machine_code) code += (code.empty() ? "" : " ") + c.text();
  if (build.code.at_least) code = build.code.at_least->text() + " or higher";
  if (build.code.ptx_target) code += fmt::format(", PTX {}", build.code.ptx_target->text());
  std::string have;
  for (const SetupGpu& gpu : setup_.gpus)
    have += (have.empty() ? "" : " ") + (gpu.capability ? gpu.capability->text() : "?");
  answer_.needs.push_back({"compute capability",
                           code.empty() ? "not known" : code,
                           !have.empty()       ? have
                           : setup_.gpus_known ? "no GPU"
                                               : "not known",
                           Truth::unknown});
}

void Question::describe_libraries() {
  const BuildRow& build = *answer_.build;
  if (!uses_system_libraries()) {
    answer_.needs.push_back({"CUDA", build.cuda.text(), "comes with it", Truth::yes});
    return;
  }
  const bool cuda_known = setup_.libraries_known || !setup_.toolkits.empty();
  const bool cudnn_known = setup_.libraries_known || setup_.cudnn;
  std::vector<std::string> have = setup_.sonames;
  for (const Version& toolkit : setup_.toolkits) {
    for (const SonameRow& row : tables().toolkit_sonames) {
      if (row.versions.contains(toolkit)) have.push_back(row.soname);
    }
  }
  if (setup_.cudnn) have.push_back(soname_of_cudnn(*setup_.cudnn).value_or(""));
  for (const FrameworkLibraryRow& row : tables().framework_libraries) {
    if (row.framework != build.framework || !version_ || !row.versions.contains(*version_))
      continue;
    missing_is_silent_ = row.silent;
    const bool cudnn = row.library == "cudnn";
    const auto soname = cudnn ? (build.cudnn ? soname_of_cudnn(*build.cudnn) : std::nullopt)
                              : soname_in_toolkit(build.cuda, row.library);
    if (!soname) continue;
    answer_.loads.push_back(*soname);
    const bool known = cudnn ? cudnn_known : cuda_known;
    if (known && std::ranges::find(have, *soname) == have.end()) answer_.missing.push_back(*soname);
  }
  std::vector<std::string> toolkits;
  for (const Version& toolkit : setup_.toolkits) toolkits.push_back(toolkit.text());
  const std::string found = !toolkits.empty() ? fmt::format("{}", fmt::join(toolkits, ", "))
                            : cuda_known      ? "by name"
                                              : "not known";
  answer_.needs.push_back({"CUDA",
                           build.cuda.text(),
                           found,
                           !answer_.missing.empty() ? Truth::no
                           : cuda_known             ? Truth::yes
                                                    : Truth::unknown});
}

Verdict Question::cudnn_verdict() const {
  if (!uses_system_libraries() || !setup_.cudnn || !answer_.build->cudnn) return {};
  const Version& compiled = *answer_.build->cudnn;
  // TensorFlow up to 1.4 wanted the very same minor.
  const bool equal = version_ && *version_ < *Version::parse("1.5");
  if (equal && setup_.cudnn->prefix(2) != compiled.prefix(2)) {
    return {Truth::no,
            fmt::format("TensorFlow up to 1.4 needs cuDNN {} itself", compiled.prefix(2)),
            "",
            false};
  }
  return cudnn_serves(*setup_.cudnn, compiled);
}

void Question::describe_cudnn() {
  const auto& cudnn = answer_.build->cudnn;
  if (!cudnn) return;
  if (!uses_system_libraries()) {
    answer_.needs.push_back({"cuDNN", cudnn->text(), "comes with it", Truth::yes});
    return;
  }
  std::string have = setup_.libraries_known ? "none" : "not known";
  const auto soname = soname_of_cudnn(*cudnn);
  if (soname && std::ranges::find(setup_.sonames, *soname) != setup_.sonames.end()) have = *soname;
  if (setup_.cudnn) have = setup_.cudnn->text();
  answer_.needs.push_back({"cuDNN",
                           fmt::format("{} or newer {}.x", cudnn->text(), cudnn->major()),
                           have,
                           cudnn_verdict().truth});
}

}  // namespace launchgap::doctor
