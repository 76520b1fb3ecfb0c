#include "harness/device/activity.h"

namespace launchgap::activity {

const char* name_of(OverheadKind kind) {
  switch (kind) {
    case OverheadKind::other:
      return "other";
    case OverheadKind::compiler:
      return "compiler";
    case OverheadKind::buffer_flush:
      return "buffer flush";
    case OverheadKind::instrumentation:
      return "instrumentation";
    case OverheadKind::resource:
      return "resource";
    case OverheadKind::module_loading:
      return "module loading";
    case OverheadKind::lazy_function_loading:
      return "lazy function loading";
    case OverheadKind::command_buffer_full:
      return "command buffer full";
    case OverheadKind::buffer_request:
      return "buffer request";
  }
  return "other";
}

std::uint32_t Trace::name_index(const char* name) {
  if (!name) name = "(unnamed)";
  // Most launches repeat the kernel before. A pointer alone proves nothing: a module that is loaded
  // later may put another name there.
  if (name == last_pointer_ && names_[last_index_] == name) return last_index_;
  last_pointer_ = name;
  if (const auto known = index_by_pointer_.find(name);
      known != index_by_pointer_.end() && names_[known->second] == name) {
    return last_index_ = known->second;
  }
  const auto [entry, added] =
      index_by_name_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (added) names_.emplace_back(name);
  index_by_pointer_[name] = entry->second;
  return last_index_ = entry->second;
}

void Trace::clear() {
  calls.clear();
  kernels.clear();
  transfers.clear();
  overheads.clear();
  waits.clear();
  memory.clear();
  graphs.clear();
  dropped = unknown = 0;
}

}  // namespace launchgap::activity
