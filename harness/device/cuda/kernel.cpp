#include "harness/device/cuda/kernel.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "harness/core/errors.h"
#include "kernels/images.h"

namespace launchgap::cuda {
namespace {

/// LAUNCHGAP_KERNELS: native, portable, or auto, which prefers native.
std::string wanted_form() {
  const char* text = std::getenv("LAUNCHGAP_KERNELS");
  std::string form = text && *text ? text : "auto";
  if (form != "auto" && form != "native" && form != "portable") {
    throw UsageError("LAUNCHGAP_KERNELS is '{}': it can be auto, native or portable", form);
  }
  return form;
}

/// Machine code runs on its own compute capability and on later ones of the same major.
bool has_machine_code(int compute_capability) {
  return std::ranges::any_of(kernels::native_architectures(), [&](int built_for) {
    return built_for / 10 == compute_capability / 10 && built_for <= compute_capability;
  });
}

/// A kernel about a generation may have no portable form, or none that older GPUs run.
void require_form(const KernelDescription& kernel,
                  std::string_view native,
                  int compute_capability) {
  const int needs = std::max(kernel.native_from, kernel.needs);
  if (compute_capability < needs)
    throw Unsupported("kernel {} needs compute capability {}.{}, and this is {}.{}",
                      kernel.name,
                      needs / 10,
                      needs % 10,
                      compute_capability / 10,
                      compute_capability % 10);
  if (kernel.last > 0 && compute_capability > kernel.last)
    throw Unsupported(
        "kernel {} is for compute capability {}.{} and no later one, and this is {}.{}",
        kernel.name,
        kernel.last / 10,
        kernel.last % 10,
        compute_capability / 10,
        compute_capability % 10);
  if (kernel.native_from == 0) return;
  const bool built = std::ranges::any_of(kernels::native_architectures(), [&](int built_for) {
    return built_for >= kernel.native_from && built_for <= compute_capability;
  });
  if (native.empty() || !built) {
    throw Unsupported(
        "kernel {} exists in native form only, and this build was made without an nvcc that knows "
        "compute capability {}.{}",
        kernel.name,
        kernel.native_from / 10,
        kernel.native_from % 10);
  }
}

}  // namespace

CudaModule::CudaModule(const Driver& driver,
                       const KernelDescription& description,
                       int compute_capability)
    : driver_(driver) {
  const kernels::KernelImages images = kernels::images_of(description);
  const std::string wanted = wanted_form();
  require_form(description, images.native, compute_capability);
  if (!images.native.empty() && wanted != "portable" && load(images.native)) {
    form_ = "native";
    compiled_by_driver_ = !has_machine_code(compute_capability);
  } else if (!images.portable.empty() && wanted != "native" && description.native_from == 0) {
    load_portable(images.portable);
    form_ = "portable";
    compiled_by_driver_ = true;
  } else if (images.native.empty() && images.portable.empty()) {
    throw Unsupported(
        "this build carries no device code: it was built without clang and without nvcc. Install "
        "clang (scripts/setup does) and build again");
  } else {
    if (refused_ != abi::kSuccess && description.native_from > 0)
      throw Unsupported(
          "the driver does not take the native form of kernel {}: {}. It is of a toolkit that is "
          "newer than the driver, maybe",
          description.name,
          driver_.describe(refused_));
    throw Unsupported("this build has no {} form of kernel {} for compute capability {}.{}",
                      wanted == "auto" ? "native" : wanted,
                      description.name,
                      compute_capability / 10,
                      compute_capability % 10);
  }
  try {
    CHECK_CUDA(driver_, cuModuleGetFunction(&function_, module_, description.name));
    allow_shared_memory(description);
  } catch (...) {
    driver_.cuModuleUnload(module_);
    throw;
  }
}
CudaModule::~CudaModule() {
  driver_.cuModuleUnload(module_);
}

/// What is more than 48 KiB has to be asked for.
void CudaModule::allow_shared_memory(const KernelDescription& description) {
  if (description.shared_bytes == 0) return;
  const abi::Result code =
      driver_.cuFuncSetAttribute
          ? driver_.cuFuncSetAttribute(
                function_, abi::kMaxDynamicSharedBytes, static_cast<int>(description.shared_bytes))
          : abi::kInvalidValue;
  if (code == abi::kInvalidValue)
    throw Unsupported(
        "kernel {} needs {} bytes of shared memory for a block, more than this GPU has",
        description.name,
        description.shared_bytes);
  driver_.check(code, "cuFuncSetAttribute", __FILE__, __LINE__);
}

/// False if the image has nothing for this GPU or is of a toolkit that the driver is too old for,
/// which is no error: the portable form is there for that. Old drivers say of newer images that
/// they are invalid. That the driver's compiler is missing or switched off (221, 223) is an error:
/// the portable form needs it too.
bool CudaModule::load(std::string_view image) {
  const abi::Result code = driver_.cuModuleLoadDataEx(&module_, image.data(), 0, nullptr, nullptr);
  switch (code) {
    case abi::kNoBinaryForGpu:
    case abi::kUnsupportedPtxVersion:
    case abi::kInvalidImage:
    case abi::kInvalidPtx:
    case abi::kInvalidSource:
      refused_ = code;
      return false;
    default:
      driver_.check(code, "cuModuleLoadDataEx", __FILE__, __LINE__);
      return true;
  }
}

void CudaModule::load_portable(std::string_view ptx) {
  std::array<char, 4096> log{};
  int options[] = {abi::kJitErrorLogBuffer, abi::kJitErrorLogBufferSizeBytes};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  const abi::Result code = driver_.cuModuleLoadDataEx(&module_, ptx.data(), 2, options, values);
  if (code != abi::kSuccess && log[0] != '\0') {
    throw LibraryError("CUDA driver",
                       "cuModuleLoadDataEx",
                       code,
                       driver_.describe(code) + ": " + log.data(),
                       is_sticky(code));
  }
  driver_.check(code, "cuModuleLoadDataEx", __FILE__, __LINE__);
}

Device::MatrixMap map_matrix(const Driver& driver,
                             void* address,
                             int rows,
                             int columns,
                             int box_rows) {
  if (!driver.cuTensorMapEncodeTiled)
    throw Unsupported(
        "the driver has no cuTensorMapEncodeTiled, by which memory hardware brings boxes of a "
        "matrix: CUDA 12.0 has it");
  constexpr unsigned kBoxColumns = 64, kElementBytes = 2;
  const std::uint64_t sizes[] = {static_cast<std::uint64_t>(columns),
                                 static_cast<std::uint64_t>(rows)};
  const std::uint64_t strides[] = {sizes[0] * kElementBytes};
  const unsigned box[] = {kBoxColumns, static_cast<unsigned>(box_rows)}, steps[] = {1, 1};
  abi::TensorMap map;
  CHECK_CUDA(driver,
             cuTensorMapEncodeTiled(&map,
                                    abi::kTensorBfloat16,
                                    2,
                                    address,
                                    sizes,
                                    strides,
                                    box,
                                    steps,
                                    abi::kTensorNoInterleave,
                                    abi::kTensorSwizzle128,
                                    abi::kTensorPromote128,
                                    abi::kTensorFillZero));
  Device::MatrixMap mapped;
  static_assert(sizeof mapped.opaque == sizeof map.opaque);
  std::ranges::copy(map.opaque, mapped.opaque);
  return mapped;
}

}  // namespace launchgap::cuda
