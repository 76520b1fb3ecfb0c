#include "harness/device/activity.h"

#include <cstdlib>
#include <cxxabi.h>
#include <memory>

namespace launchgap::activity {
namespace {

/// "_Z4fillIfEvPT_" as "void fill<float>(float*)"; what is no C++ name, or an endless one, as it
/// is.
std::string demangled(const std::string& name) {
  constexpr std::size_t kLongest = 4096;
  if (!name.starts_with("_Z") || name.size() > kLongest) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? std::string(text.get()) : name;
}

}  // namespace

const char* name_of(OverheadKind kind) {
  constexpr const char* kNames[] = {"other",
                                    "compiler",
                                    "buffer flush",
                                    "instrumentation",
                                    "resource",
                                    "module loading",
                                    "lazy function loading",
                                    "command buffer full",
                                    "buffer request"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::uint32_t Trace::name_index(const char* name) {
  if (!name) name = "(unnamed)";
  // Most launches repeat the kernel before. A pointer alone proves nothing: a module that is loaded
  // later may put another name there.
  if (name == last_pointer_ && given_names_[last_index_] == name) return last_index_;
  last_pointer_ = name;
  if (const auto known = index_by_pointer_.find(name);
      known != index_by_pointer_.end() && given_names_[known->second] == name) {
    return last_index_ = known->second;
  }
  const auto [entry, added] =
      index_by_name_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (added) names_.push_back(demangled(given_names_.emplace_back(name)));
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
