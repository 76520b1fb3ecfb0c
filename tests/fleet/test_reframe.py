"""ci/reframe by ReFrame itself, through a real Slurm: one test per node, one process per GPU."""

import json
import re
import sys
from pathlib import Path

import private_slurm
import pytest
from private_slurm import PrivateSlurm
from shipped import LAUNCHGAP, ROOT
from test_slurm_night import CASE, virtual_node

reason = private_slurm.why_not()
pytestmark = pytest.mark.skipif(reason is not None, reason=reason or "")

SITE = {
    "systems": [
        {
            "name": "rig",
            "hostnames": [".*"],
            "partitions": [
                {"name": "gpu", "scheduler": "squeue", "launcher": "srun", "environs": ["builtin"], "features": ["gpu"]}
            ],
        }
    ],
    "environments": [{"name": "builtin", "target_systems": ["rig"]}],
}


def reframe(slurm, gpus):
    """Its exit code, what it says without colours, and its JSON report."""
    site = slurm.folder / "settings.py"
    site.write_text(f"site_configuration = {SITE!r}\n", encoding="utf-8")
    done = slurm.run(
        *(Path(sys.executable).with_name("reframe"), "-C", site, "-c", ROOT / "ci" / "reframe" / "launchgap.py"),
        *("--prefix", slurm.folder / "reframe", "--report-file", slurm.folder / "report.json", "-r", "--distribute=idle"),
        *("--performance-report", "--report-junit", slurm.folder / "junit.xml"),
        *("-S", f"launchgap={LAUNCHGAP}", "-S", f"gpus={gpus}", "-S", "profile=quick", "-S", f"case_filter={CASE}"),
        *("-S", "run_options=--runs,1,--trace,off"),
        check=False,
        timeout=180,
        HOME=str(slurm.folder),
    )
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    return done.returncode, said, json.loads((slurm.folder / "report.json").read_text(encoding="utf-8"))


def test_each_node_is_a_test_and_its_slowest_gpu_the_performance(tmp_path):
    nodes = [virtual_node(tmp_path, "n1", "h100", 2), virtual_node(tmp_path, "n2", "h100", 2, slow=[1])]
    with PrivateSlurm(tmp_path, nodes) as slurm:
        code, said, report = reframe(slurm, 2)
        assert code == 0, said
        assert "Ran 2/2 test case(s)" in said
        slowest = {}
        for case in report["runs"][0]["testcases"]:
            node = re.search(r"nid=(\w+)", case["display_name"])[1]
            slowest[node] = {key.rpartition(":")[2]: value[0] for key, value in case["perfvalues"].items()}
        metric = "launch.null.api=driver.mode=idle.api_ns"
        assert slowest["n2"][metric] > 1.3 * slowest["n1"][metric]


def test_a_gpu_that_is_not_measured_fails(tmp_path):
    nodes = [virtual_node(tmp_path, "n1", "h100", 2)]
    described = json.loads((tmp_path / "n1.json").read_text(encoding="utf-8"))
    described["faults"] = [{"device": 1, "library": "cuda", "call": "cuDevicePrimaryCtxRetain", "code": 719}]
    (tmp_path / "n1.json").write_text(json.dumps(described), encoding="utf-8")
    with PrivateSlurm(tmp_path, nodes) as slurm:
        code, said, _ = reframe(slurm, 2)
        assert code != 0
        assert "sanity error" in said
