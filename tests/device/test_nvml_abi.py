"""launchgap declares the part of NVML that it calls; nvidia-ml-py, NVIDIA's own binding, has the same."""

import ctypes
import pathlib
import re

import pynvml
import pytest

HEADER = (pathlib.Path(__file__).parents[2] / "harness/device/cuda/abi/nvml.h").read_text()
CONSTANTS = {name: int(value) for name, value in re.findall(r"\b(k[A-Z]\w+) = (\d+)", HEADER)}

SAME = {
    "kSuccess": "NVML_SUCCESS",
    "kUninitialized": "NVML_ERROR_UNINITIALIZED",
    "kNotSupported": "NVML_ERROR_NOT_SUPPORTED",
    "kNoPermission": "NVML_ERROR_NO_PERMISSION",
    "kNotFound": "NVML_ERROR_NOT_FOUND",
    "kInsufficientSize": "NVML_ERROR_INSUFFICIENT_SIZE",
    "kDriverNotLoaded": "NVML_ERROR_DRIVER_NOT_LOADED",
    "kFunctionNotFound": "NVML_ERROR_FUNCTION_NOT_FOUND",
    "kGpuIsLost": "NVML_ERROR_GPU_IS_LOST",
    "kLibraryDriverMismatch": "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
    "kUnknown": "NVML_ERROR_UNKNOWN",
    "kGraphicsClock": "NVML_CLOCK_GRAPHICS",
    "kSmClock": "NVML_CLOCK_SM",
    "kDefaultMode": "NVML_COMPUTEMODE_DEFAULT",
    "kProhibitedMode": "NVML_COMPUTEMODE_PROHIBITED",
    "kExclusiveProcessMode": "NVML_COMPUTEMODE_EXCLUSIVE_PROCESS",
    "kUncorrectedErrors": "NVML_MEMORY_ERROR_TYPE_UNCORRECTED",
    "kSinceBoot": "NVML_VOLATILE_ECC",
    "kFabricNotSupported": "NVML_GPU_FABRIC_STATE_NOT_SUPPORTED",
    "kFabricNotStarted": "NVML_GPU_FABRIC_STATE_NOT_STARTED",
    "kFabricInProgress": "NVML_GPU_FABRIC_STATE_IN_PROGRESS",
    "kFabricCompleted": "NVML_GPU_FABRIC_STATE_COMPLETED",
    "kMemoryClock": "NVML_CLOCK_MEM",
    "kGpuTemperature": "NVML_TEMPERATURE_GPU",
    "kSwPowerCapNs": "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP",
    "kSyncBoostNs": "NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST",
    "kPcieReplays": "NVML_FI_DEV_PCIE_REPLAY_COUNTER",
    "kPowerInstantMilliwatts": "NVML_FI_DEV_POWER_INSTANT",
    "kSwThermalNs": "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN",
    "kHwThermalNs": "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN",
    "kHwPowerBrakeNs": "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN",
    "kDouble": "NVML_VALUE_TYPE_DOUBLE",
    "kUnsignedInt": "NVML_VALUE_TYPE_UNSIGNED_INT",
    "kUnsignedLong": "NVML_VALUE_TYPE_UNSIGNED_LONG",
    "kUnsignedLongLong": "NVML_VALUE_TYPE_UNSIGNED_LONG_LONG",
    "kSignedLongLong": "NVML_VALUE_TYPE_SIGNED_LONG_LONG",
    "kSignedInt": "NVML_VALUE_TYPE_SIGNED_INT",
    "kUnsignedShort": "NVML_VALUE_TYPE_UNSIGNED_SHORT",
}


@pytest.mark.parametrize("ours", CONSTANTS)
def test_every_number_is_nvidias(ours):
    assert CONSTANTS[ours] == getattr(pynvml, SAME[ours])


def test_structures_are_laid_out_alike():
    # The header pins its own layouts by static_assert.
    assert ctypes.sizeof(pynvml.c_nvmlFieldValue_t) == 40 and "sizeof(FieldValue) == 40" in HEADER
    assert pynvml.c_nvmlFieldValue_t.value.offset == 32 and "offsetof(FieldValue, value) == 32" in HEADER
    assert ctypes.sizeof(pynvml.nvmlPciInfo_t) == 68 and "sizeof(PciInfo) == 68" in HEADER
    assert pynvml.nvmlPciInfo_t.busId.offset == 36 and "offsetof(PciInfo, bus_id) == 36" in HEADER
    assert ctypes.sizeof(pynvml.c_nvmlMemory_t) == 24 and "sizeof(Memory) == 24" in HEADER
    assert ctypes.sizeof(pynvml.c_nvmlGpuFabricInfo_t) == 28 and "sizeof(FabricInfo) == 28" in HEADER
    assert pynvml.c_nvmlGpuFabricInfo_t.state.offset == 24 and "offsetof(FabricInfo, state) == 24" in HEADER
    assert ctypes.sizeof(pynvml.c_nvmlProcessInfo_t) == 24 and "sizeof(ProcessInfo) == 24" in HEADER


def test_every_function_exists():
    binding = pathlib.Path(pynvml.__file__).read_text()
    for name in set(re.findall(r"X\((nvml\w+),", HEADER)) - {"nvmlInit_v2"}:  # the binding has a newer one
        assert f'"{name}"' in binding, name
