#include "harness/import/chrome_names.h"

#include <algorithm>
#include <array>

#include "harness/import/call_names.h"

namespace launchgap::recording {
namespace {

using activity::OverheadKind;

struct NamedOverhead {
  OverheadKind kind;
  std::string_view name;
  std::string_view part;
};
constexpr auto kOverheads = std::to_array<NamedOverhead>({
    {OverheadKind::compiler, "Driver Compiler", "Compiler"},
    {OverheadKind::buffer_flush, "Buffer Flush", "Flush"},
    {OverheadKind::instrumentation, "Instrumentation", "Instrumentation"},
    {OverheadKind::resource, "Resource", "Resource"},
    {OverheadKind::module_loading, "Runtime Triggered Module Loading", "Module Load"},
    {OverheadKind::lazy_function_loading, "Lazy Function Loading", "Lazy Function"},
    {OverheadKind::command_buffer_full, "Command Buffer Full", "Buffer Full"},
    {OverheadKind::buffer_request, "Activity Buffer Request", "Buffer Request"},
});

}  // namespace

std::string_view name_of_overhead(OverheadKind kind) {
  const auto known = std::ranges::find(kOverheads, kind, &NamedOverhead::kind);
  return known == kOverheads.end() ? "Unknown" : known->name;
}

OverheadKind overhead_named(std::string_view name) {
  const auto known = std::ranges::find_if(kOverheads, [&](const NamedOverhead& one) {
    return name.find(one.part) != std::string_view::npos;
  });
  return known == kOverheads.end() ? OverheadKind::other : known->kind;
}

std::string name_for_tools(std::string_view call) {
  if (!activity::is_launch(purpose_of(call))) return std::string(call);
  if (call.starts_with("__")) call.remove_prefix(2);
  if (call.ends_with("_ptsz")) call.remove_suffix(5);
  // Holistic Trace Analysis knows the driver's launches by one name alone.
  if (call == "cuLaunchKernelEx") call.remove_suffix(2);
  return std::string(call);
}

}  // namespace launchgap::recording
