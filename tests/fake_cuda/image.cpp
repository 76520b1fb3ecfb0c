#include "tests/fake_cuda/image.h"

#include <cstdio>
#include <cstring>
#include <string_view>

namespace launchgap::fake {
namespace {

using namespace cuda::abi;

bool starts_with(const void* image, std::string_view magic) {
  // Byte by byte: a text may be shorter than the magic.
  const auto* const bytes = static_cast<const char*>(image);
  for (std::size_t i = 0; i < magic.size(); ++i) {
    if (bytes[i] != magic[i]) return false;
  }
  return true;
}

}  // namespace

Image examine_image(const void* image, int capability, int driver_version) {
  constexpr std::string_view kFatbin = "\x50\xED\x55\xBA";
  constexpr std::string_view kElf = "\177ELF";
  constexpr int kOldestOfNvcc13 = 75;
  if (image == nullptr) return {kInvalidImage, 0, "no image"};
  if (starts_with(image, kFatbin) || starts_with(image, kElf)) {
    if (capability < kOldestOfNvcc13) return {kNoBinaryForGpu, 0, "no native code for this device"};
    return {kSuccess, capability, "", true};
  }
  const auto* const text = static_cast<const char*>(image);
  const char* const target = std::strstr(text, ".target");
  if (target == nullptr) return {kInvalidImage, 0, "neither native code nor PTX"};
  int architecture = 0;
  if (std::sscanf(target, ".target sm_%d", &architecture) != 1) {
    return {kInvalidPtx, 0, "PTX whose .target is no sm_NN"};
  }
  int major = 0;
  int minor = 0;
  const char* const version = std::strstr(text, ".version");
  if (version == nullptr || std::sscanf(version, ".version %d.%d", &major, &minor) != 2) {
    return {kInvalidPtx, 0, "PTX without .version"};
  }
  // PTX 7.0 came with CUDA 11.0, 8.0 with 12.0, 9.0 with 13.0 (PTX ISA, "Release Notes"); minor
  // versions run nearly alike.
  const int newest = 10 * (driver_version / 1000 - 4) + driver_version % 1000 / 10;
  if (10 * major + minor > newest) return {kUnsupportedPtxVersion, 0, "PTX newer than the driver"};
  if (architecture > capability) return {kNoBinaryForGpu, 0, "PTX for a newer device"};
  return {kSuccess, architecture, ""};
}

}  // namespace launchgap::fake
