"""Which of several versions of a library is taken: what driver and GPU can use."""

import shutil

import pytest
from shipped import BUILD, records

FAKES = BUILD / "fake_cuda"
LIBRARIES = {
    "cublas": [f"libcublas.so.{version}" for version in (11, 12, 13)],
    "cudnn": [f"libcudnn.so.{version}" for version in (8, 9)],
    "cupti": [f"libcupti.so.{version}" for version in ("11.1", "11.4", "11.8", 12, 13)],
}


# Of each library one case, and one that is traced.
FILTER = r"launch/null.*idle|matmul.*size:256/type:fp32|convolution.*conv5_1x1_2048/n:1/type:fp32"


def node_of(make_node, driver, capability):
    return make_node(whole={"driver_version": driver}, compute_capability=capability, memory_pools=False)


def copies(folder, names):
    """Files of their own, so that the path tells which one was loaded."""
    folder.mkdir(parents=True)
    for name in names:
        (source,) = FAKES.glob(name.split(".so")[0] + ".so.*")
        shutil.copy(source, folder / name)
    return folder


def taken(session):
    """The files that were loaded."""
    ends = [record for file in records(session).values() for record in file if record["record"] == "end"]
    return {library["path"] for end in ends for library in end["libraries"]}


CASES = [  # the driver's CUDA, compute capability, and what is taken
    (11040, "3.7", "libcublas.so.11", "libcudnn.so.8", "libcupti.so.11.4"),
    (11080, "8.0", "libcublas.so.11", "libcudnn.so.8", "libcupti.so.11.8"),
    (12040, "8.0", "libcublas.so.12", "libcudnn.so.9", "libcupti.so.12"),
    (13000, "7.0", "libcublas.so.12", "libcudnn.so.8", "libcupti.so.13"),
    (13000, "9.0", "libcublas.so.13", "libcudnn.so.9", "libcupti.so.13"),
]


@pytest.mark.parametrize("driver, capability, cublas, cudnn, cupti", CASES)
def test_what_driver_and_gpu_can_use_is_taken(run, make_node, tmp_path, driver, capability, cublas, cudnn, cupti):
    folder = copies(tmp_path / "lib", [name for names in LIBRARIES.values() for name in names])
    copies(tmp_path / "driver", ["libcuda.so.1"])
    _, session = run(
        FILTER, trace="on", node=node_of(make_node, driver, capability), LD_LIBRARY_PATH=f"{tmp_path / 'driver'}:{folder}"
    )
    assert {str(folder / name) for name in (cublas, cudnn, cupti)} == {
        path for path in taken(session) if path.startswith(str(folder))
    }


def test_what_cannot_be_used_comes_after_everything_else(run, make_node, tmp_path):
    """The loader has libraries of CUDA 12, the driver is of CUDA 11: a folder that the loader does not know comes first."""
    loader = copies(tmp_path / "loader", ["libcuda.so.1", "libcublas.so.12", "libcudnn.so.9"])
    folder = copies(tmp_path / "cuda/lib64", ["libcublas.so.11", "libcudnn.so.8"])
    node = node_of(make_node, 11040, "8.0")
    environment = {"LD_LIBRARY_PATH": str(loader), "CUDA_HOME": str(tmp_path / "cuda")}
    _, session = run(FILTER, node=node, **environment)
    assert {str(folder / name) for name in ("libcublas.so.11", "libcudnn.so.8")} <= taken(session)
    shutil.rmtree(folder)
    shutil.rmtree(session)
    _, session = run(FILTER, code=None, node=node, **environment)
    assert {str(loader / name) for name in ("libcublas.so.12", "libcudnn.so.9")} <= taken(session), "rather than none"


def test_a_folder_that_was_pointed_to_comes_before_a_newer_library(run, make_node, tmp_path):
    copies(tmp_path / "driver", ["libcuda.so.1"])
    chosen = copies(tmp_path / "chosen/lib64", ["libcublas.so.11"])
    copies(tmp_path / "other/lib64", ["libcublas.so.12"])
    _, session = run(
        "matmul.*size:256/type:fp32",
        node=node_of(make_node, 12040, "8.0"),
        LD_LIBRARY_PATH=str(tmp_path / "driver"),
        CUDA_HOME=str(tmp_path / "chosen"),
        CUDA_PATH=str(tmp_path / "other"),
    )
    assert str(chosen / "libcublas.so.11") in taken(session)
