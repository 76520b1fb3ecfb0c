#include "tests/fake_cuda/jit_cache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

namespace launchgap::fake {
namespace {

/// Empty: there is none.
std::filesystem::path cache_folder() {
  const char* const disabled = std::getenv("CUDA_CACHE_DISABLE");
  if (disabled != nullptr && std::string_view(disabled) == "1") return {};
  const char* const folder = std::getenv("CUDA_CACHE_PATH");
  return folder != nullptr ? folder : "";
}

}  // namespace

bool cached_by_jit(const char* ptx, const DeviceDescription& device, int driver_version) {
  const auto folder = cache_folder();
  if (folder.empty()) return false;
  const std::string key =
      std::to_string(driver_version) + " " + std::to_string(device.capability()) + " " + ptx;
  const auto file = folder / ("fake-" + std::to_string(std::hash<std::string>()(key)));
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) return true;
  std::filesystem::create_directories(folder, ignored);
  // Other processes see all of it or nothing.
  const auto unfinished = file.string() + "." + std::to_string(getpid());
  if (std::ofstream(unfinished) << key) std::filesystem::rename(unfinished, file, ignored);
  return false;
}

}  // namespace launchgap::fake
