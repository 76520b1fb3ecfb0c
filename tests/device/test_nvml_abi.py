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
    "kSmClock": "NVML_CLOCK_SM",
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
    assert ctypes.sizeof(pynvml.c_nvmlProcessInfo_t) == 24 and "sizeof(ProcessInfo) == 24" in HEADER


def test_every_function_exists():
    binding = pathlib.Path(pynvml.__file__).read_text()
    for name in set(re.findall(r"X\((nvml\w+),", HEADER)) - {"nvmlInit_v2"}:  # the binding has a newer one
        assert f'"{name}"' in binding, name
