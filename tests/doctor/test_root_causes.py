"""Each way in which a GPU is not used: one finding, the cause, with the remedy that helps."""

import fcntl
import os

import pytest
from root_causes import CASES
from sick_machine import A100, causes


@pytest.mark.parametrize("name", CASES)
def test_one_cause_and_its_remedy(machine, name):
    breaks, code, remedy, note, exit_code = CASES[name]
    breaks(machine)
    answer, code_of_exit = machine.ask()
    found = {finding["code"]: finding for finding in answer["findings"]}
    assert causes(answer) == ([] if note else [code]), answer["findings"]
    assert remedy in found[code]["remedy"] + " ".join(found[code]["evidence"]), found[code]
    assert code_of_exit == exit_code


def test_a_demand_of_which_one_alternative_is_met_is_met(machine):
    machine.write("/.dockerenv", "")
    machine.environment["NVIDIA_REQUIRE_CUDA"] = "cuda>=13.1 brand=tesla,driver>=580,driver<581"
    assert machine.ask()[0]["findings"] == []


@pytest.mark.parametrize("value", ["0,", "0", "GPU-a0001111", "0,-1"])
def test_lists_that_are_as_they_should_be(machine, value):
    machine.environment["CUDA_VISIBLE_DEVICES"] = value
    answer, exit_code = machine.ask("--no-prove")
    assert causes(answer) == [] and exit_code == 0


def test_the_same_about_two_gpus_is_one_finding_and_none_of_them_usable(machine):
    machine.more_gpus(2)
    for device in machine.node["devices"]:
        device["nvml"] = {"compute_mode": "prohibited"}
    answer, exit_code = machine.ask("--require-gpu")
    assert causes(answer) == ["compute-mode-prohibited"] and exit_code == 77
    assert len(answer["findings"][0]["subjects"]) == 2 and answer["usable_gpus"] == 0


def test_a_gpu_on_which_a_session_measures_is_left_alone(machine, tmp_path):
    locks = tmp_path / "locks"
    locks.mkdir()
    machine.environment["LAUNCHGAP_LOCK_DIR"] = str(locks)
    with (locks / f"launchgap-{machine.node['devices'][0]['uuid']}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer, exit_code = machine.ask()
    assert [finding["code"] for finding in answer["findings"]] == ["session-on-gpu"] and exit_code == 0
    assert "proof" not in answer["gpus"][0] and answer["usable_gpus"] == 1
    assert machine.ask()[0]["proven"], "the lock ended with its process"


def test_a_virtual_function_is_no_gpu_of_this_machine(machine):
    machine.gpu("0000:07:00.4", A100)
    machine.write("/sys/bus/pci/devices/0000:07:00.4/physfn", "")
    assert machine.ask()[0]["findings"] == []


def test_a_healthy_machine_has_nothing_to_tell(machine):
    answer, exit_code = machine.ask()
    assert answer["findings"] == [] and exit_code == 0
    assert answer["usable_gpus"] == 1 and answer["proven"]
    assert [step["status"] for step in answer["gpus"][0]["proof"]] == ["ok"] * 5


def test_nodes_that_a_user_may_not_open(machine):
    for node in ("nvidiactl", "nvidia0", "nvidia-uvm"):
        (machine.root / "dev" / node).chmod(0)
    # Root opens them all the same, unless it gives up what lets it.
    user = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    machine.fault("cuda", "cuInit", 999)
    answer, exit_code = machine.ask(command=user)
    assert causes(answer) == ["uvm-unavailable"] and exit_code == 3
    (machine.root / "dev" / "nvidia-uvm").chmod(0o666)
    answer, _ = machine.ask(command=user)
    assert causes(answer) == ["device-node-denied"]
