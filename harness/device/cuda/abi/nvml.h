// The part of NVML's binary interface that launchgap calls, declared here since nvml.h comes with
// neither the driver nor the toolkit's wheels.
//
// tests/device/test_nvml_abi.py compares every value and layout with NVIDIA's nvidia-ml-py.
// Source: NVML API reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace launchgap::cuda::nvml {

using Result = int;
using Device = struct DeviceHandle*;

enum : Result {
  kSuccess = 0,
  kUninitialized = 1,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kLibraryDriverMismatch = 18,
  kUnknown = 999,
};

enum Clock : int { kGraphicsClock = 0, kSmClock = 1, kMemoryClock = 2 };
enum ComputeMode : int { kDefaultMode = 0, kProhibitedMode = 2, kExclusiveProcessMode = 3 };
enum EccCounter : int { kUncorrectedErrors = 1, kSinceBoot = 0 };
/// Where registering with the fabric of NVSwitches stands.
enum FabricState : unsigned char {
  kFabricNotSupported = 0,
  kFabricNotStarted = 1,
  kFabricInProgress = 2,
  kFabricCompleted = 3
};
enum TemperatureSensor : int { kGpuTemperature = 0 };

/// Fields of nvmlDeviceGetFieldValues: time in nanoseconds for which each reason held the clocks
/// down, since the driver was loaded.
enum Field : std::uint32_t {
  kSwPowerCapNs = 74,
  kSyncBoostNs = 76,
  kPcieReplays = 94,
  kPowerInstantMilliwatts = 186,
  kSwThermalNs = 269,
  kHwThermalNs = 270,
  kHwPowerBrakeNs = 271,
};

enum ValueType : int {
  kDouble = 0,
  kUnsignedInt = 1,
  kUnsignedLong = 2,
  kUnsignedLongLong = 3,
  kSignedLongLong = 4,
  kSignedInt = 5,
  kUnsignedShort = 6,
};

union Value {
  double as_double;
  unsigned as_unsigned;
  unsigned long as_unsigned_long;
  unsigned long long as_unsigned_long_long;
  long long as_signed_long_long;
  int as_int;
  unsigned short as_unsigned_short;
};

/// nvmlFieldValue_t.
struct FieldValue {
  std::uint32_t field;
  std::uint32_t scope;
  std::int64_t timestamp;
  std::int64_t latency_us;
  ValueType type;
  Result result;
  Value value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);

/// nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3, and of _v2, which R470 has
/// instead.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory_bytes;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

/// nvmlPciInfo_t.
struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, bus_id) == 36);

/// nvmlMemory_t.
struct Memory {
  unsigned long long total, free, used;
};
static_assert(sizeof(Memory) == 24);

/// nvmlGpuFabricInfo_t.
struct FabricInfo {
  unsigned char cluster[16];
  Result status;
  unsigned clique;
  FabricState state;
};
static_assert(sizeof(FabricInfo) == 28 && offsetof(FabricInfo, state) == 24);

// X(name, required, type): every function that is called. Beyond the required ones, a function that
// is missing takes away its own field.
#define LAUNCHGAP_NVML_FUNCTIONS(X)                                                               \
  X(nvmlInit_v2, true, Result())                                                                  \
  X(nvmlErrorString, true, const char*(Result code))                                              \
  X(nvmlSystemGetNVMLVersion, false, Result(char* text, unsigned bytes))                          \
  X(nvmlDeviceGetHandleByUUID, true, Result(const char* uuid, Device* device))                    \
  X(nvmlDeviceGetHandleByPciBusId_v2, false, Result(const char* bus_id, Device* device))          \
  X(nvmlSystemGetDriverVersion, false, Result(char* text, unsigned bytes))                        \
  X(nvmlSystemGetCudaDriverVersion_v2, false, Result(int* version))                               \
  X(nvmlDeviceGetCount_v2, false, Result(unsigned* count))                                        \
  X(nvmlDeviceGetHandleByIndex_v2, false, Result(unsigned index, Device* device))                 \
  X(nvmlDeviceGetName, false, Result(Device device, char* text, unsigned bytes))                  \
  X(nvmlDeviceGetUUID, false, Result(Device device, char* text, unsigned bytes))                  \
  X(nvmlDeviceGetPciInfo_v3, false, Result(Device device, PciInfo* info))                         \
  X(nvmlDeviceGetMinorNumber, false, Result(Device device, unsigned* minor))                      \
  X(nvmlDeviceGetMemoryInfo, false, Result(Device device, Memory* memory))                        \
  X(nvmlDeviceGetComputeMode, false, Result(Device device, int* mode))                            \
  X(nvmlDeviceGetPersistenceMode, false, Result(Device device, int* enabled))                     \
  X(nvmlDeviceGetMigMode, false, Result(Device device, unsigned* now, unsigned* pending))         \
  X(nvmlDeviceGetMaxMigDeviceCount, false, Result(Device device, unsigned* count))                \
  X(nvmlDeviceGetMigDeviceHandleByIndex,                                                          \
    false,                                                                                        \
    Result(Device device, unsigned index, Device* instance))                                      \
  X(nvmlDeviceGetEccMode, false, Result(Device device, int* now, int* pending))                   \
  X(nvmlDeviceGetTotalEccErrors,                                                                  \
    false,                                                                                        \
    Result(Device device, int error, int counter, unsigned long long* count))                     \
  X(nvmlDeviceGetRemappedRows,                                                                    \
    false,                                                                                        \
    Result(Device device,                                                                         \
           unsigned* correctable,                                                                 \
           unsigned* uncorrectable,                                                               \
           unsigned* pending,                                                                     \
           unsigned* failed))                                                                     \
  X(nvmlDeviceGetMaxPcieLinkGeneration, false, Result(Device device, unsigned* generation))       \
  X(nvmlDeviceGetMaxPcieLinkWidth, false, Result(Device device, unsigned* lanes))                 \
  X(nvmlDeviceGetMaxClockInfo, false, Result(Device device, Clock clock, unsigned* mhz))          \
  X(nvmlDeviceGetApplicationsClock, false, Result(Device device, Clock clock, unsigned* mhz))     \
  X(nvmlDeviceGetPowerManagementLimit, false, Result(Device device, unsigned* milliwatts))        \
  X(nvmlDeviceGetPowerManagementDefaultLimit, false, Result(Device device, unsigned* milliwatts)) \
  X(nvmlDeviceGetEnforcedPowerLimit, false, Result(Device device, unsigned* milliwatts))          \
  X(nvmlDeviceGetVbiosVersion, false, Result(Device device, char* text, unsigned bytes))          \
  X(nvmlDeviceGetGpuFabricInfo, false, Result(Device device, FabricInfo* info))                   \
  X(nvmlDeviceGetPerformanceState, false, Result(Device device, int* state))                      \
  X(nvmlDeviceGetClockInfo, false, Result(Device device, Clock clock, unsigned* megahertz))       \
  X(nvmlDeviceGetTemperature,                                                                     \
    false,                                                                                        \
    Result(Device device, TemperatureSensor sensor, unsigned* celsius))                           \
  X(nvmlDeviceGetPowerUsage, false, Result(Device device, unsigned* milliwatts))                  \
  X(nvmlDeviceGetTotalEnergyConsumption,                                                          \
    false,                                                                                        \
    Result(Device device, unsigned long long* millijoules))                                       \
  X(nvmlDeviceGetCurrentClocksEventReasons,                                                       \
    false,                                                                                        \
    Result(Device device, unsigned long long* reasons))                                           \
  X(nvmlDeviceGetCurrentClocksThrottleReasons,                                                    \
    false,                                                                                        \
    Result(Device device, unsigned long long* reasons))                                           \
  X(nvmlDeviceGetCurrPcieLinkGeneration, false, Result(Device device, unsigned* generation))      \
  X(nvmlDeviceGetCurrPcieLinkWidth, false, Result(Device device, unsigned* lanes))                \
  X(nvmlDeviceGetFieldValues, false, Result(Device device, int count, FieldValue* values))        \
  X(nvmlDeviceGetComputeRunningProcesses_v2,                                                      \
    false,                                                                                        \
    Result(Device device, unsigned* count, ProcessInfo* processes))                               \
  X(nvmlDeviceGetComputeRunningProcesses_v3,                                                      \
    false,                                                                                        \
    Result(Device device, unsigned* count, ProcessInfo* processes))

/// One pointer per function; optional ones may be null.
struct NvmlFunctions {
#define LAUNCHGAP_DECLARE(name, required, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  LAUNCHGAP_NVML_FUNCTIONS(LAUNCHGAP_DECLARE)
#undef LAUNCHGAP_DECLARE
};

}  // namespace launchgap::cuda::nvml
