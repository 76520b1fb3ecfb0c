// What one GPU did for a process in stretches of time, as a part of a record: by its parts, ranks
// of a job are compared. docs/definitions.md, "Stragglers", says what each part is.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace launchgap {

/// A stretch is divided into these: each moment of it counts for one.
enum class StretchPart : std::uint8_t {
  kernels,
  copies,
  input,
  program,
  launches,
  waits,
  allocations,
  calls,
  queued,
  unknown,
};

struct StretchPartInfo {
  const char* key;  // in records
  std::string_view name, meaning;
};
inline constexpr std::array<StretchPartInfo, 10> kStretchParts = {{
    {"kernels_ns", "kernels", "Kernels run that are no collectives."},
    {"copies_ns", "copies", "No kernel runs, and a copy or fill does that is no input."},
    {"input_ns",
     "input",
     "Of the GPU's work only copies from the host run; or it idles while the program loads data, "
     "by the name of a range."},
    {"program_ns", "program", "The GPU idles while the program is in no call of CUDA."},
    {"launches_ns", "launches", "The GPU idles between a launch call and the start of its work."},
    {"waits_ns", "waits", "The GPU idles while the program waits for it."},
    {"allocations_ns", "allocations", "The GPU idles while the program allocates or gives back."},
    {"calls_ns", "calls", "The GPU idles while the program is in another call of CUDA."},
    {"queued_ns", "queued", "The GPU idles with work queued, which waits for something else."},
    {"unknown_ns", "unknown", "Nothing tells what the GPU did or waited for."},
}};
constexpr std::string_view name_of(StretchPart part) {
  return kStretchParts[static_cast<std::size_t>(part)].name;
}

/// Of a row of stretches, the time of each part in each.
struct StretchParts {
  std::array<std::vector<std::int64_t>, kStretchParts.size()> ns;

  std::size_t size() const { return ns.front().size(); }
  static void fields(auto& self, auto&& field) {
    for (std::size_t part = 0; part < kStretchParts.size(); ++part)
      field.optional(kStretchParts[part].key, self.ns[part]);
  }
  /// As a record: of another length none of them can be told apart.
  void complete() {
    const bool alike =
        std::ranges::all_of(ns, [this](const auto& part) { return part.size() == size(); });
    if (!alike) *this = StretchParts();
  }
};

}  // namespace launchgap
