"""Fixtures: sessions in folders of their own, and nodes to measure."""

import json
import shutil

import pytest
from shipped import NODES, UNTRACED, launchgap


@pytest.fixture
def lock_dir(tmp_path):
    """Locks of a test's own, so that a session on this machine does not disturb it."""
    folder = tmp_path / "locks"
    folder.mkdir()
    return folder


@pytest.fixture
def run(tmp_path, lock_dir):
    """`launchgap run` of these cases into a folder of the test's own: returns the finished process and the session. It must
    end with `code`, where that is not None.

    Of the GPUs of the node, or of the host without one: one run, only the plain arm, no page and no processes that show the
    observer effect, unless the test says otherwise: to draw a page takes longer than to measure."""

    def start(cases, *options, devices=None, runs=1, trace="off", code=0, node=None, page=False, observer=False, **extra):
        session = tmp_path / "session"
        left_out = ([] if page else ["--no-report"]) + ([] if observer else ["--no-observer-effect"])
        how = ["--devices", devices or ("gpu" if node else "host"), "--trace", trace, "--filter", cases]
        how += [] if runs is None else ["--runs", runs]
        how += ["--seed", 7]  # the same operands in all tests
        extra["LAUNCHGAP_LOCK_DIR"] = str(lock_dir)
        done = launchgap("run", *how, *options, *left_out, "-o", session, node=node, code=code, **extra)
        return done, session

    return start


@pytest.fixture
def make_node(tmp_path):
    """Writes a node description: `one_a100.json` with changes to its device and to the whole of it, and faults."""

    def write(faults=(), devices=1, whole=None, **changes):
        node = json.loads((NODES / "one_a100.json").read_text()) | (whole or {})
        first = node["devices"][0] | changes
        node["devices"] = [
            first | {"uuid": first["uuid"][:-2] + f"{i:02x}", "pci": f"0000:{7 + i:02x}:00.0"} for i in range(devices)
        ]
        node["faults"] = list(faults)
        path = tmp_path / "node.json"
        path.write_text(json.dumps(node))
        return path

    return write


@pytest.fixture
def export(tmp_path):
    """`launchgap export`, once per session: returns the folder with its tables."""

    def tables(session):
        folder = tmp_path / "tables"
        if not folder.exists():
            launchgap("export", session, "-o", folder, code=0)
        return folder

    return tables


@pytest.fixture(scope="session")
def measured(tmp_path_factory):
    """A session of the host: one run of one case. Not to be changed."""
    folder = tmp_path_factory.mktemp("measured")
    launchgap(
        "run", "--devices", "host", "--runs", 1, "--filter", "launch/null.*idle", *UNTRACED, "--no-report",
        "-o", folder / "session", LAUNCHGAP_LOCK_DIR=str(folder), code=0,
    )  # fmt: skip
    return folder / "session"


@pytest.fixture
def session(measured, tmp_path):
    """A copy of it, for a test of its own."""
    return shutil.copytree(measured, tmp_path / "session")
