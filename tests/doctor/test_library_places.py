"""Libraries that the loader does not find: launchgap takes them from where they are, and the doctor tells programs of the
same places."""

import os
import shutil

import pytest
from sick_machine import BUILD, FAKES, Machine

PLACES = {
    "CUDA_HOME": ({"CUDA_HOME": "/opt/cuda"}, "/opt/cuda/lib64"),
    "CUDA_PATH, CUPTI's folder": ({"CUDA_PATH": "/opt/cuda"}, "/opt/cuda/extras/CUPTI/lib64"),
    "Debian's pip": ({}, "/usr/local/lib/python3.12/dist-packages/nvidia/cublas/lib"),
    "wheels of CUDA 13": ({}, "/usr/local/lib/python3.12/dist-packages/nvidia/cu13/lib"),
    "pip install --user": ({"HOME": "/home/u"}, "/home/u/.local/lib/python3.12/site-packages/nvidia/cublas/lib"),
    "PYTHONUSERBASE": (
        {"HOME": "/home/u", "PYTHONUSERBASE": "/base"},
        "/base/lib/python3.12/site-packages/nvidia/cublas/lib",
    ),
    "a virtual environment": ({"VIRTUAL_ENV": "/venv"}, "/venv/lib/python3.12/site-packages/nvidia/cublas/lib"),
    "conda": ({"CONDA_PREFIX": "/conda"}, "/conda/lib"),
    "pip in conda": ({"CONDA_PREFIX": "/conda"}, "/conda/lib/python3.12/site-packages/nvidia/cublas/lib"),
    "run file": ({}, "/usr/local/cuda/lib64"),
    "run file without the link": ({}, "/usr/local/cuda-11.4/lib64"),
}


def python(machine, path):
    machine.write(path, "\x7fELF").chmod(0o755)


def machine_without_libraries(folder):
    """The loader finds the driver and nothing of CUDA's libraries."""
    machine = Machine(folder)
    for library in ("libcublas.so.13", "libcudnn.so.9"):
        (machine.lib / library).unlink()
    python(machine, "/usr/bin/python3.12")
    (machine.root / "usr/bin/python3").symlink_to("python3.12")
    for prefix in ("/venv", "/conda"):
        python(machine, f"{prefix}/bin/python3.12")
        (machine.root / f"{prefix}/bin/python3".lstrip("/")).symlink_to("python3.12")
    machine.write("/venv/pyvenv.cfg", "home = /usr/bin\n")
    none = dict.fromkeys(("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "PYTHONPATH", "PYTHONUSERBASE", "PYTHONNOUSERSITE"))
    machine.environment |= none | {"HOME": "/nowhere", "PATH": f"/usr/bin:{os.environ['PATH']}"}
    return machine


def put(machine, folder, name, source):
    place = machine.root / folder.lstrip("/") / name
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(FAKES / source, place)


def product(machine):
    answer, _ = machine.ask()
    return next(step for step in answer["gpus"][0]["proof"] if step["step"] == "matmul")


@pytest.mark.parametrize("place", PLACES)
def test_launchgap_loads_from_where_the_doctor_says_that_it_is(tmp_path, place):
    environment, folder = PLACES[place]
    machine = machine_without_libraries(tmp_path)
    machine.environment |= environment
    # Of a CUDA that this machine hardly has for real.
    machine.node["driver_version"] = 11040
    assert product(machine)["status"] != "ok", "nothing is there yet"
    put(machine, folder, "libcublas.so.11", "libcublas.so.13")
    assert product(machine)["status"] == "ok"
    done = machine.start("--", BUILD / "doctor_programs" / "doctor_acts", "init", "open", "libcublas.so.11", "sleep", "1500")
    assert f"it is {folder}/libcublas.so.11, where the loader does not look" in " ".join(done.stderr.split())
