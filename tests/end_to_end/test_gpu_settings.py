"""How a GPU is set up is part of a run's fingerprint, as far as NVML tells it."""

from shipped import records

KEYS = ("driver", "vbios", "power_limit_w", "application_clock_mhz", "persistence", "mig")


def settings(run, node):
    _, session = run("launch/null.*idle", node=node)
    (file,) = records(session).values()
    first, last = file[0]["fingerprint"], file[-1]["fingerprint"]
    found = {key: first[key] for key in KEYS if key in first}
    assert {key: last[key] for key in KEYS if key in last} == found
    return found


def test_what_nvml_tells(run, make_node):
    assert settings(run, make_node()) == {
        "driver": "580.65.06", "vbios": "92.00.45.00.03", "power_limit_w": "400", "persistence": "on", "mig": "off",
    }  # fmt: skip


def test_what_was_changed(run, make_node):
    nvml = {
        "vbios": "96.00.99.00.01", "power_limit_mw": 325500, "application_clock_mhz": 1005, "max_sm_clock_mhz": 1410,
        "persistence": False,
    }  # fmt: skip
    assert settings(run, make_node(nvml=nvml)) == {
        "driver": "580.65.06", "vbios": "96.00.99.00.01", "power_limit_w": "325.5", "application_clock_mhz": "1005",
        "persistence": "off", "mig": "off",
    }  # fmt: skip


def test_what_it_does_not_tell_is_left_out(run, make_node):
    missing = ["VbiosVersion", "EnforcedPowerLimit", "ApplicationsClock", "PersistenceMode", "MigMode"]
    found = settings(run, make_node(nvml={"missing": [f"nvmlDeviceGet{name}" for name in missing]}))
    assert found == {"driver": "580.65.06", "power_limit_w": "400"}, "the limit that was set, where none is enforced"


def test_without_nvml_there_is_none(run, make_node):
    faults = [{"library": "nvml", "call": "nvmlInit_v2", "after": 0, "code": 999}]
    assert settings(run, make_node(faults=faults)) == {}
