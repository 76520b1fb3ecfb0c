#include "tests/fake_cuda/error_names.h"

#include <algorithm>
#include <iterator>

namespace launchgap::fake {
namespace {

#define X(code, name, text) \
  { code, "CUDA_ERROR_" #name, text }
constexpr ErrorName kErrors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    X(1, INVALID_VALUE, "invalid argument"),
    X(2, OUT_OF_MEMORY, "out of memory"),
    X(3, NOT_INITIALIZED, "initialization error"),
    X(4, DEINITIALIZED, "driver shutting down"),
    X(34, STUB_LIBRARY, "CUDA driver is a stub library"),
    X(46, DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
    X(100, NO_DEVICE, "no CUDA-capable device is detected"),
    X(101, INVALID_DEVICE, "invalid device ordinal"),
    X(200, INVALID_IMAGE, "device kernel image is invalid"),
    X(201, INVALID_CONTEXT, "invalid device context"),
    X(209, NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    X(214, ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
    X(215, UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
    X(218, INVALID_PTX, "a PTX JIT compilation failed"),
    X(220, NVLINK_UNCORRECTABLE, "uncorrectable NVLink error detected during the execution"),
    X(222, UNSUPPORTED_PTX_VERSION, "the provided PTX was compiled with an unsupported toolchain."),
    X(400, INVALID_HANDLE, "invalid resource handle"),
    X(401, ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    X(500, NOT_FOUND, "named symbol not found"),
    X(600, NOT_READY, "device not ready"),
    X(700, ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    X(702, LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    X(709, CONTEXT_IS_DESTROYED, "context is destroyed"),
    X(710, ASSERT, "device-side assert triggered"),
    X(714, HARDWARE_STACK_ERROR, "hardware stack error"),
    X(715, ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    X(716, MISALIGNED_ADDRESS, "misaligned address"),
    X(717, INVALID_ADDRESS_SPACE, "operation not supported on global/shared address space"),
    X(718, INVALID_PC, "invalid program counter"),
    X(719, LAUNCH_FAILED, "unspecified launch failure"),
    X(720, COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    X(800, NOT_PERMITTED, "operation not permitted"),
    X(801, NOT_SUPPORTED, "operation not supported"),
    X(802, SYSTEM_NOT_READY, "system not yet initialized"),
    X(803,
      SYSTEM_DRIVER_MISMATCH,
      "system has unsupported display driver / cuda driver combination"),
    X(804,
      COMPAT_NOT_SUPPORTED_ON_DEVICE,
      "forward compatibility was attempted on non supported HW"),
    X(900, STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    X(901, STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    X(902, STREAM_CAPTURE_MERGE, "operation would result in a merge of separate capture sequences"),
    X(903, STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began"),
    X(904, STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    X(905, STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"),
    X(906,
      STREAM_CAPTURE_IMPLICIT,
      "operation would make the legacy stream depend on a capturing blocking stream"),
    X(907,
      CAPTURED_EVENT,
      "operation not permitted on an event last recorded in a capturing stream"),
    X(908,
      STREAM_CAPTURE_WRONG_THREAD,
      "attempt to terminate a thread-local capture sequence from another thread"),
    X(910,
      GRAPH_EXEC_UPDATE_FAILURE,
      "the graph update was not performed because it included changes which violated constraints "
      "specific to instantiated graph update"),
    X(999, UNKNOWN, "unknown error"),
};
#undef X

}  // namespace

const ErrorName* find_error(int code) {
  const auto* const found = std::ranges::find(kErrors, code, &ErrorName::code);
  return found == std::end(kErrors) ? nullptr : found;
}

}  // namespace launchgap::fake
