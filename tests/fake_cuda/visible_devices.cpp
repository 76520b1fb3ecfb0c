#include "tests/fake_cuda/visible_devices.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <sstream>

namespace launchgap::fake {
namespace {

constexpr int kInvalid = -1;

int by_index(const std::string& entry, std::size_t count) {
  char* end = nullptr;
  const long value = std::strtol(entry.c_str(), &end, 10);
  if (end == entry.c_str() || value < 0 || value >= static_cast<long>(count)) return kInvalid;
  return static_cast<int>(value);
}

int by_uuid(const std::string& entry, const std::vector<std::string>& uuids) {
  if (!entry.starts_with("GPU-")) return kInvalid;
  int found = kInvalid;
  for (std::size_t i = 0; i < uuids.size(); ++i) {
    if (!uuids[i].starts_with(entry)) continue;
    if (found != kInvalid) return kInvalid;
    found = static_cast<int>(i);
  }
  return found;
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

std::vector<int> visible_devices(const std::vector<std::string>& uuids, const char* mask) {
  std::vector<int> visible;
  if (mask == nullptr) {
    visible.resize(uuids.size());
    std::iota(visible.begin(), visible.end(), 0);
    return visible;
  }
  const bool uuid_list = trimmed(mask).starts_with("GPU-");
  std::istringstream list(mask);
  for (std::string entry; std::getline(list, entry, ',');) {
    entry = trimmed(entry);
    const int device = uuid_list ? by_uuid(entry, uuids) : by_index(entry, uuids.size());
    if (device == kInvalid) break;
    if (std::find(visible.begin(), visible.end(), device) != visible.end()) return {};
    visible.push_back(device);
  }
  return visible;
}

}  // namespace launchgap::fake
