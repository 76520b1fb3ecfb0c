// What runs on a GPU: cuDNN's code, images, the builds of frameworks.
#include <algorithm>

#include <fmt/format.h>

#include "harness/doctor/compatibility/compatibility.h"

namespace launchgap::doctor {
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
    return {
        Truth::unknown, fmt::format("no table has cuDNN {}{}", cudnn.text(), missing), "", false};
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
            fmt::format("cuDNN {} and {} have different majors", loaded.text(), compiled.text()),
            "",
            false};
  }
  // "8" alone says nothing about the minor.
  if (loaded.parts().size() == 1 && compiled.minor() > 0) {
    return {Truth::unknown,
            fmt::format("the minor of cuDNN {} is not known", loaded.text()),
            "",
            false};
  }
  return {loaded.minor() >= compiled.minor() ? Truth::yes : Truth::no,
          fmt::format("a program built with cuDNN {} needs {} or newer of the same major",
                      compiled.text(),
                      compiled.prefix(2)),
          "",
          false};
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
    return Verdict{yes ? Truth::yes : Truth::no, std::move(reason), "", false};
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
    return {Truth::no, fmt::format("the build begins at {}", code.at_least->text()), "", false};
  }
  if (toolkit_knows_gpu(cuda, capability).yes()) {
    return {Truth::yes, fmt::format("the build begins at {}", code.at_least->text()), "", false};
  }
  return {Truth::unknown,
          fmt::format("the GPU is newer than CUDA {}, and what PTX the build has is not known",
                      cuda.text()),
          "",
          false};
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
    return {{Truth::unknown, "what GPUs the build has code for is in no table", "", false}};
  }
  const auto runs = [&](Capability target, CodeImage::Encoding kind) {
    return image_runs({kind, target}, capability).yes();
  };
  for (const Capability target : code.machine_code) {
    if (runs(target, CodeImage::Encoding::machine_code)) {
      return {
          {Truth::yes, fmt::format("the build has machine code for {}", target.text()), "", false}};
    }
  }
  const std::string has =
      fmt::format("the build has machine code for {}", list_of(code.machine_code));
  const Capability oldest = std::ranges::min(code.machine_code);
  if (code.ptx == Ptx::none || capability < oldest) {
    return {{Truth::no, has + (code.ptx == Ptx::none ? " and no PTX" : ""), "", false}};
  }
  if (code.ptx == Ptx::unknown || !code.ptx_target) {
    return {{Truth::unknown, has + ", and what PTX it has is not known", "", false}};
  }
  if (!runs(*code.ptx_target, CodeImage::Encoding::ptx)) {
    return {{Truth::no, fmt::format("{} and PTX for {}", has, code.ptx_target->text()), "", false}};
  }
  return {{Truth::yes,
           fmt::format("{}; the driver compiles its PTX for {}", has, code.ptx_target->text()),
           "",
           false},
          true};
}

}  // namespace launchgap::doctor
