"""scripts/update-tables: what it reads of an index, what it does to the table, and what it leaves alone."""

from __future__ import annotations

import base64
import contextlib
import csv
import http.server
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "update-tables"
HEADER = "pytorch_version_range,package,cuda,compute_capabilities,ptx,cudnn,pypi,note,source\n"
ON_LINUX = 'platform_system == "Linux"'

_loader = importlib.machinery.SourceFileLoader("update_tables", str(SCRIPT))
_spec = importlib.util.spec_from_loader("update_tables", _loader)
update_tables = importlib.util.module_from_spec(_spec)
sys.modules["update_tables"] = update_tables  # dataclasses look their module up
sys.dont_write_bytecode, _before = True, sys.dont_write_bytecode
_loader.exec_module(update_tables)
import package_index  # noqa: E402  (update-tables has put scripts/ on the path)

sys.dont_write_bytecode = _before


# --- an index ---


class Pages(http.server.ThreadingHTTPServer):
    """What an index answers: bytes, a status, or a function that answers with a handler."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages, self.asked = {}, []
        self.base = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        pass  # a client that went away


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append((self.path, dict(self.headers)))
        page = self.server.pages.get(self.path, 404)
        if callable(page):
            page(self)
        elif isinstance(page, int):
            self.send_response(page)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.answer(page)

    def answer(self, page, length=None):
        self.send_response(200)
        self.send_header("Content-Length", str(len(page) if length is None else length))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def index():
    server = Pages()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def wheel(version, platform="manylinux_2_28_x86_64", python="cp312", **more):
    name = f"torch-{version}-{python}-{python}-{platform}.whl"
    return {"filename": name, "url": f"/files/{name}", "yanked": False} | more


def metadata(*requirements):
    lines = ["Metadata-Version: 2.1", "Name: torch", *(f"Requires-Dist: {r}" for r in requirements)]
    return ("\n".join(lines) + "\n\nA description\nRequires-Dist: nvidia-cudnn-cu13==1.2.3\n").encode()


def cuda12(cuda, cudnn):
    linux = 'platform_system == "Linux" and platform_machine == "x86_64"'
    runtime = f"nvidia-cuda-runtime-cu12 (=={cuda}) ; {linux}"
    return ["filelock", runtime, f"nvidia-cudnn-cu12 (=={cudnn}) ; {linux}", 'optree ; extra == "optree"']


def cuda13(toolkit, cudnn):
    return [
        f"cuda-toolkit[cudart,nvrtc]=={toolkit}; {ON_LINUX}",
        f'cuda-bindings<14,>=13.0.3; {ON_LINUX} and python_version < "3.15"',
        f"nvidia-cudnn-cu13=={cudnn}; {ON_LINUX}",
    ]


def publish(index, versions, files=()):
    """An index in JSON with the metadata of each wheel. `versions` has the requirements of each."""
    files = [wheel(version) for version in versions] + list(files)
    index.pages["/simple/torch/"] = json.dumps({"files": files}).encode()
    for version, requirements in versions.items():
        index.pages[f"{wheel(version)['url']}.metadata"] = metadata(*requirements)


# --- a folder of tables ---


def row(versions, cuda, cudnn="", pypi="", source="a page", package="wheel", code="7.5 8.0", ptx="none", note=""):
    return ",".join([versions, package, cuda, code, ptx, cudnn, pypi, note, source]) + "\n"


@pytest.fixture
def data(tmp_path):
    (tmp_path / "toolkit_driver.csv").write_text("toolkit,x\n12.4,\n12.6,\n12.8,\n13.0,\n13.2,\n")
    return tmp_path


def table(data, *rows):
    (data / "pytorch_builds.csv").write_text(HEADER + "".join(rows))


def text_of(data):
    return (data / "pytorch_builds.csv").read_text()


def rows_of(data):
    with (data / "pytorch_builds.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def cells(data, *columns):
    return [tuple(r[c] for c in columns) for r in rows_of(data)]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)


def run(index, data, *arguments, base=None):
    where = ["--index", base or index.base] if base or index else []
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = update_tables.main(["--data", str(data), *where, *arguments])
        except SystemExit as stop:
            code = stop.code
    return types.SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


def write(index, data):
    done = run(index, data, "--write")
    assert done.returncode == 0, done.stderr
    return done.stdout


def today():
    return time.strftime("%Y-%m-%d", time.gmtime())


# --- what it tells ---


def test_a_table_that_agrees(index, data):
    publish(index, {"2.6.0": cuda12("12.4.127", "9.1.0.70"), "2.13.0": cuda13("13.0.2", "9.20.0.48")})
    default = row("2.6", "12.4", "9.1.0", "yes")
    table(data, default, row("2.6", "12.6", "9.5.1"), row("2.13", "13.0", "9.20.0", "yes"))
    before = text_of(data)
    done = run(index, data)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 rows disagree" in done.stdout
    assert text_of(data) == before and not (data / "made.json").exists()


def test_a_wrong_cudnn_is_told_and_corrected(index, data):
    publish(index, {"2.11.0": cuda13("13.0.2", "9.19.0.56")})
    table(data, row("2.11", "13.0", "9.17.1", "yes", "a page; recalled: cuda cudnn pypi ptx"))
    before = text_of(data)
    done = run(index, data)
    assert done.returncode == 1
    assert "disagrees: 2.11 for CUDA 13.0: cuDNN is 9.17.1 in the table, 9.19.0 in the metadata" in done.stdout
    assert "scripts/update-tables --write" in done.stdout
    assert text_of(data) == before

    days = {today()}
    write(index, data)
    days.add(today())
    (after,) = rows_of(data)
    assert after["cudnn"] == "9.19.0" and after["compute_capabilities"] == "7.5 8.0"
    day = json.loads((data / "made.json").read_text())["made"]
    assert day in days
    ours = f"PyPI Requires-Dist of torch 2.11.0, {day} (cuda cudnn pypi)"
    assert after["source"] == f"a page; {ours}; recalled: ptx"
    assert run(index, data).returncode == 0


def test_what_is_confirmed_is_recalled_no_more(index, data):
    publish(index, {"2.9.0": cuda12("12.8.90", "9.10.2.21"), "2.9.1": cuda12("12.8.90", "9.10.2.21")})
    default = row("2.9", "12.8", "9.10.2", "yes", "a page; recalled: pypi")
    table(data, default, row("2.9", "12.6", "", "", "recalled: pypi"))
    done = run(index, data)
    assert done.returncode == 0
    assert "confirmed: 2.9 for CUDA 12.8: pypi (torch 2.9.0, 2.9.1)" in done.stdout
    assert "--write writes this" in done.stdout
    write(index, data)
    first, second = (r["source"] for r in rows_of(data))
    assert re.fullmatch(r"a page; PyPI Requires-Dist of torch 2.9.0, 2.9.1, [\d-]{10} \(cuda cudnn pypi\)", first)
    assert re.fullmatch(r"PyPI Requires-Dist of torch 2.9.0, 2.9.1, [\d-]{10} \(pypi\)", second)


def test_recalled_alone_is_every_column(index, data):
    publish(index, {"2.9.0": cuda12("12.8.90", "9.10.2.21")})
    table(data, row("2.9", "12.8", "9.10.2", "yes", "recalled; a page"))
    write(index, data)
    assert rows_of(data)[0]["source"].endswith("(cuda cudnn pypi); recalled: compute_capabilities ptx note")


def test_another_build_is_the_default(index, data):
    publish(index, {"2.14.0": cuda13("13.0.3", "9.24.0.43")})
    table(
        data,
        row("2.14", "12.6", "9.10.2"),
        row("2.14", "13.0", "9.24.0"),
        row("2.14", "13.2", "9.24.0", "yes", "a matrix; an issue (pypi)"),
    )
    done = run(index, data)
    assert done.returncode == 1
    assert "2.14 for CUDA 13.0: it is not pip's default in the table, pip's default by the metadata" in done.stdout
    assert "2.14 for CUDA 13.2: it is pip's default in the table, not pip's default by the metadata" in done.stdout
    write(index, data)
    assert cells(data, "cuda", "pypi") == [("12.6", ""), ("13.0", "yes"), ("13.2", "")]
    untouched, right, wrong = (r["source"] for r in rows_of(data))
    assert untouched == "a page"
    assert right.endswith("(cuda cudnn pypi)")
    assert re.fullmatch(r"a matrix; PyPI Requires-Dist of torch 2.14.0, [\d-]{10} \(pypi\)", wrong)


def test_a_cudnn_that_was_not_known(index, data):
    publish(index, {"2.6.0": cuda12("12.4.127", "9.1.0.70")})
    table(data, row("2.6", "12.4", "", "yes"))
    assert "cuDNN is not known in the table, 9.1.0 in the metadata" in run(index, data).stdout
    write(index, data)
    assert cells(data, "cudnn") == [("9.1.0",)]


def test_writing_twice_changes_nothing_more(index, data):
    publish(index, {"2.14.0": cuda13("13.0.3", "9.24.0.43"), "2.15.0": cuda13("13.2.2", "9.26.0.51")})
    table(data, row("2.14", "13.0", "9.20.0", "yes", "recalled"))
    write(index, data)
    once = text_of(data)
    assert "0 rows disagree or are missing, 0 are confirmed" in write(index, data)
    assert text_of(data) == once


def test_conda_packages_are_left_alone(index, data):
    publish(index, {"2.5.0": cuda12("12.4.127", "9.1.0.70")})
    conda = row("2.5", "12.4", "8.0.0", "", "a table; recalled: pypi", package="conda")
    table(data, row("2.5", "12.4", "9.1.0", "yes"), conda)
    write(index, data)
    assert text_of(data).endswith(conda)


# --- ranges ---


@pytest.mark.parametrize(
    "text, inside, outside",
    [
        ("2.11", ["2.11.0", "2.11.7"], ["2.1.1", "2.10.0", "2.12.0"]),
        ("1.2-1.3.0", ["1.2.0", "1.3.0"], ["1.1.0", "1.3.1"]),
        ("1.3.1-1.5", ["1.3.1", "1.4.0", "1.5.1"], ["1.3.0", "1.6.0"]),
        ("2.9-2.10", ["2.9.0", "2.10.0"], ["2.8.0", "2.11.0"]),
        ("1.3.0", ["1.3.0", "1.3"], ["1.3.1"]),
    ],
)
def test_ranges(text, inside, outside):
    versions = update_tables.Range.parse(text)
    assert str(versions) == text
    assert all(versions.contains(v) for v in inside)
    assert not any(versions.contains(v) for v in outside)


RELEASES = ["1.2.0", "1.3.0", "1.3.1", "1.4.0", "1.5.0", "1.5.1"]


@pytest.mark.parametrize(
    "first, last, within, text",
    [
        ("1.2.0", "1.2.0", "1.2-1.3.0", "1.2"),
        ("1.3.0", "1.3.0", "1.2-1.3.0", "1.3.0"),
        ("1.3.1", "1.4.0", "1.3.1-1.5", "1.3.1-1.4"),
        ("1.5.0", "1.5.1", "1.3.1-1.5", "1.5"),
        ("1.5.0", "1.5.0", "1.5", "1.5.0"),
        ("1.5.1", "1.5.1", "1.5", "1.5.1"),
        ("1.4.0", "1.5.0", "1.4-1.5", "1.4-1.5.0"),
        ("1.3.0", "1.3.1", None, "1.3"),
    ],
)
def test_the_range_of_a_part(first, last, within, text):
    within = within and update_tables.Range.parse(within)
    part = update_tables.range_of(first, last, RELEASES, within)
    assert str(part) == text
    assert part.contains(first) and part.contains(last)


def test_a_range_is_split_where_only_a_part_differs(index, data):
    publish(
        index,
        {
            "2.8.0": cuda12("12.8.90", "9.10.2.21"),
            "2.9.0": cuda12("12.8.90", "9.10.2.21"),
            "2.9.1": cuda12("12.8.90", "9.10.2.21"),
            "2.10.0": cuda12("12.8.90", "9.13.0.1"),
        },
    )
    table(data, row("2.8-2.10", "12.6", "9.1.0"), row("2.8-2.10", "12.8", "9.10.2", "yes"))
    done = run(index, data)
    assert done.returncode == 1
    assert "disagrees: 2.10 for CUDA 12.8: cuDNN is 9.10.2" in done.stdout and "1 rows" in done.stdout
    write(index, data)
    assert cells(data, "pytorch_version_range", "cuda", "cudnn", "pypi", "source")[:2] == [
        ("2.8-2.10", "12.6", "9.1.0", "", "a page"),
        ("2.8-2.9", "12.8", "9.10.2", "yes", "a page"),
    ]
    assert cells(data, "pytorch_version_range", "cudnn")[2:] == [("2.10", "9.13.0")]


def test_patch_releases_may_differ(index, data):
    publish(index, {"2.5.0": cuda12("12.4.127", "9.1.0.70"), "2.5.1": cuda12("12.4.127", "9.2.0.1")})
    table(data, row("2.5", "12.4", "9.1.0", "yes"))
    write(index, data)
    assert cells(data, "pytorch_version_range", "cudnn") == [("2.5.0", "9.1.0"), ("2.5.1", "9.2.0")]


def test_a_range_is_split_where_only_a_part_is_confirmed(index, data):
    publish(index, {"1.12.0": ["typing-extensions"], "1.13.0": ["nvidia-cuda-runtime-cu11 (==11.7.99)"]})
    table(data, row("1.12-1.13", "11.7", "8.5.0", "yes", "a page; recalled: pypi"))
    write(index, data)
    old, new = rows_of(data)
    assert (old["pytorch_version_range"], old["source"]) == ("1.12", "a page; recalled: pypi")
    assert new["pytorch_version_range"] == "1.13" and "recalled" not in new["source"]
    assert new["source"].endswith("(cuda pypi)"), "it says nothing of cuDNN"


def test_a_release_that_tells_nothing_follows_its_series(index, data):
    publish(index, {"2.14.0": cuda13("13.0.3", "9.24.0.43")}, files=[wheel("2.14.1"), wheel("2.16.1")])
    unknown = row("2.16", "13.0", "9.26.0", "yes", "a page; recalled: pypi")
    table(data, row("2.14", "13.0", "9.20.0", "yes"), unknown)
    said = write(index, data)
    assert "not known: torch 2.14.1, 2.16.1: the index has no metadata of it" in said
    assert cells(data, "pytorch_version_range", "cudnn") == [("2.14", "9.24.0"), ("2.16", "9.26.0")]
    assert "torch 2.14.0, " in rows_of(data)[0]["source"]
    assert rows_of(data)[1]["source"] == "a page; recalled: pypi"


def test_a_release_follows_only_those_of_its_row(index, data):
    publish(index, {"1.13.0": ["nvidia-cuda-runtime-cu11==11.7.99"]}, files=[wheel("1.13.1")])
    later = row("1.13.1-2.0", "11.7", "8.5.0", "", "a page; recalled: pypi")
    table(data, row("1.13.0", "11.7", "8.5.0", "yes", "a page; recalled: pypi"), later)
    write(index, data)
    assert text_of(data).endswith(later)


# --- new versions ---


def test_a_new_version_is_a_new_row(index, data):
    versions = {
        "2.14.0": cuda13("13.2.1", "9.24.0.43"),
        "2.15.0": cuda13("13.2.2", "9.26.0.51"),
        "2.15.1": cuda13("13.2.2", "9.26.0.51"),
    }
    publish(index, versions, files=[wheel("2.15.2")])
    conda = row("1.7", "11.0", package="conda")
    table(
        data,
        row("2.13", "13.2", "9.20.0", code="5.0"),
        row("2.14", "13.2", "9.24.0", "yes", code="7.5 12.0", ptx="12.0"),
        row("2.14", "13.0", "9.24.0", code="6.0"),
        conda,
    )
    done = run(index, data)
    assert done.returncode == 1
    assert "missing: 2.15 for CUDA 13.2, cuDNN 9.26.0 (torch 2.15.0, 2.15.1)" in done.stdout
    write(index, data)
    assert text_of(data).endswith(conda)
    new = rows_of(data)[3]
    source = new.pop("source")
    assert new == {
        "pytorch_version_range": "2.15",
        "package": "wheel",
        "cuda": "13.2",
        "compute_capabilities": "7.5 12.0",
        "ptx": "12.0",
        "cudnn": "9.26.0",
        "pypi": "yes",
        "note": "",
    }
    assert source.startswith("compute_capabilities ptx of the row of 2.14; PyPI Requires-Dist of torch 2.15.0, ")
    assert source.endswith(" (cuda cudnn pypi); recalled: compute_capabilities ptx")
    assert run(index, data).returncode == 0


def test_the_code_of_a_new_cuda_is_not_known(index, data):
    publish(index, {"2.16.0": cuda13("13.4.0", "9.30.0.1"), "2.17.0": cuda13("13.4.1", "9.30.0.1")})
    table(data, row("2.15", "13.2", "9.26.0", "yes"))
    said = write(index, data)
    assert "CUDA 13.4 is in no row of toolkit_driver.csv" in said
    assert cells(data, "pytorch_version_range", "cuda", "compute_capabilities", "ptx", "pypi")[1:] == [
        ("2.16", "13.4", "", "", "yes"),
        ("2.17", "13.4", "", "", "yes"),
    ]
    assert "recalled" not in text_of(data)


def test_a_build_that_no_row_has_takes_the_default_from_the_others(index, data):
    publish(index, {"2.13.0": cuda13("13.2.1", "9.20.0.1"), "2.14.0": cuda13("13.0.2", "9.20.0.1")})
    table(data, row("2.13-2.14", "13.0", "9.20.0", "yes"))
    write(index, data)
    assert cells(data, "pytorch_version_range", "cuda", "pypi") == [
        ("2.13", "13.0", ""),
        ("2.13", "13.2", "yes"),
        ("2.14", "13.0", "yes"),
    ]


# --- versions that tell nothing ---


@pytest.mark.parametrize(
    "files, why",
    [
        ([wheel("2.16.0", yanked="does not start")], "it is yanked"),
        ([wheel("2.16.0", "macosx_14_0_arm64"), wheel("2.16.0", "macosx_10_9_x86_64")], "no wheel for Linux"),
        ([wheel("2.16.0", "win_amd64"), wheel("2.16.0", "manylinux_2_28_aarch64")], "no wheel for Linux"),
        ([{"filename": "torch-2.16.0.tar.gz", "url": "/files/x"}], "no wheel for Linux"),
        ([wheel("2.16.0rc1"), wheel("2.16.0.dev20261101"), wheel("2.16.0%2Bcu132"), wheel("2.16.0.post1")], ""),
        ([{"filename": "other.whl", "url": "/files/x"}, {"filename": "", "url": ""}], ""),
    ],
)
def test_files_that_pip_would_not_install_here(index, data, files, why):
    for file in files:
        index.pages[file["url"] + ".metadata"] = metadata(*cuda13("13.2.2", "9.99.0.1"))
    publish(index, {"2.13.0": cuda13("13.0.2", "9.20.0.48")}, files=files)
    table(data, row("2.13", "13.0", "9.20.0", "yes"))
    done = run(index, data)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "missing:" not in done.stdout
    assert ("not known: torch 2.16.0: " in done.stdout) == bool(why) and why in done.stdout


@pytest.mark.parametrize(
    "requirements, why",
    [
        (["filelock", "sympy"], "names no CUDA"),
        ([f'nvidia-cuda-runtime==13.4.0; {ON_LINUX} and platform_machine == "aarch64"'], "names no CUDA"),
        (['cuda-toolkit==13.4.0; sys_platform == "win32" or extra == "all"'], "names no CUDA"),
        (["cuda-toolkit>=13.4,<14", "nvidia-cudnn-cu13==9.30.0.1"], "names no CUDA"),
        (["cuda-toolkit==13.4.0", "nvidia-cuda-runtime==13.2.1"], "contradicts itself: CUDA 13.4.0 and 13.2.1"),
        (["cuda-toolkit==13.4.0; platform ="], "has a requirement that does not read"),
    ],
)
def test_metadata_that_does_not_tell_the_cuda(index, data, requirements, why):
    publish(index, {"2.13.0": cuda13("13.0.2", "9.20.0.48"), "2.16.0": requirements})
    table(data, row("2.13-2.16", "13.0", "9.20.0", "yes"))
    done = run(index, data)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"not known: torch 2.16.0: the metadata {why}" in done.stdout


# --- requirements ---


@pytest.mark.parametrize(
    "requirement, pin",
    [
        ("nvidia-cudnn-cu13==9.19.0.56", ("nvidia-cudnn", "9.19.0.56")),
        ("nvidia_cuda.runtime-cu12 (==12.4.1) ; platform_system == 'Linux'", ("nvidia-cuda-runtime", "12.4.1")),
        ("cuda-toolkit[cublas,cudart]==13.0.*", ("cuda-toolkit", "13.0")),
        ("nvidia-cublas<=13.1.1.3,>=13.1.0.3; platform_system == 'Linux'", None),
        ("nvidia-cudnn-cu13==9.19.0.post1", None),
        ("nvidia-nccl-cu13 @ https://host/file.whl ; python_version < '3'", None),
        ("numpy==2.0; nonsense", None),
        ("", None),
        ("[]==1", None),
    ],
)
def test_pins(requirement, pin):
    assert list(package_index.pins([requirement])) == ([pin] if pin else [])


@pytest.mark.parametrize(
    "marker, holds",
    [
        ("platform_system == 'Linux'", True),
        ("platform_system == 'Linux' and platform_machine == 'aarch64'", False),
        ("platform_system == 'Darwin' or sys_platform == 'linux'", True),
        ("python_version >= '3.8'", True),
        ("extra == 'opt-einsum'", False),
    ],
)
def test_a_requirement_counts_where_its_marker_holds(marker, holds):
    pins = list(package_index.pins([f"nvidia-cudnn-cu13==9.19.0.56; {marker}"]))
    assert pins == ([("nvidia-cudnn", "9.19.0.56")] if holds else [])


# --- what an index may lack ---


def test_the_metadata_of_another_wheel(index, data):
    publish(index, {"2.13.0": ["filelock"]}, files=[wheel("2.13.0", python="cp313")])
    del index.pages[f"{wheel('2.13.0')['url']}.metadata"]
    url = wheel("2.13.0", python="cp313")["url"]
    index.pages[f"{url}.metadata"] = metadata(*cuda13("13.0.2", "9.20.0.48"))
    table(data, row("2.13", "13.0", "9.20.0", "yes"))
    assert run(index, data).returncode == 0


def test_no_wheel_is_downloaded(index, data):
    publish(index, {"2.13.0": cuda13("13.0.2", "9.20.0.48")}, files=[wheel("2.12.0")])
    table(data, row("2.13", "13.0", "9.20.0", "yes"))
    run(index, data)
    assert index.asked and not [path for path, _ in index.asked if path.endswith(".whl")]


def test_the_json_of_a_version_and_of_the_newest(index, data):
    publish(index, {}, files=[wheel("2.13.0"), wheel("2.14.0"), wheel("2.15.0")])
    index.pages["/pypi/torch/2.13.0/json"] = about("2.13.0", cuda13("13.0.2", "9.20.0.48"))
    index.pages["/pypi/torch/json"] = about("2.15.0", cuda13("13.0.3", "9.26.0.51"))
    table(data, row("2.13-2.15", "13.0", "9.20.0", "yes"))
    said = run(index, data).stdout
    assert "disagrees: 2.15 for CUDA 13.0: cuDNN is 9.20.0" in said
    assert "not known: torch 2.14.0: the index has no metadata of it" in said
    assert [path for path, _ in index.asked].count("/pypi/torch/json") == 1


def about(version, requirements, **more):
    return json.dumps({"info": {"version": version, "requires_dist": requirements}} | more).encode()


@pytest.mark.parametrize("simple", [b"<!DOCTYPE html><a href='x'>x</a>", 404, 403])
def test_an_index_without_the_simple_api_in_json(index, data, simple):
    file = wheel("2.13.0") | {"url": "../../files/torch.whl#sha256=1"}
    index.pages["/simple/torch/"] = simple
    index.pages["/pypi/torch/json"] = about("2.15.0", None, releases={"2.13.0": [file], "2.12.0": [], "0.1": None})
    index.pages["/files/torch.whl.metadata"] = metadata(*cuda13("13.0.2", "9.20.0.48"))
    table(data, row("2.13", "13.0", "9.20.0", "yes"))
    done = run(index, data)
    assert done.returncode == 0, done.stderr


def test_the_program_and_the_index_of_pip(index, data):
    publish(index, {"2.13.0": cuda13("13.0.2", "9.20.0.48")})
    table(data, row("2.13", "13.0", "9.19.0", "yes"))
    environment = os.environ | {"PIP_INDEX_URL": f"{index.base}/simple/"}
    for arguments, code in (([], 1), (["--write"], 0), ([], 0), (["--no"], 2)):
        command = [sys.executable, SCRIPT, "--data", data, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        assert done.returncode == code, done.stdout + done.stderr
    assert index.asked[0][0] == "/simple/torch/"


@pytest.mark.parametrize(
    "code, out, url",
    [(0, "https://host/simple\n", "https://host/simple"), (1, "", "https://pypi.org"), (0, "", "https://pypi.org")],
)
def test_the_configuration_of_pip(monkeypatch, code, out, url):
    said = subprocess.CompletedProcess([], code, out, "")
    monkeypatch.setattr(package_index.subprocess, "run", lambda *_, **__: said)
    assert package_index.index_of_pip() == url


def test_a_password_is_sent_and_not_told(index, data):
    publish(index, {"2.13.0": cuda13("13.0.2", "9.20.0.48")})
    table(data, row("2.13", "13.0", "9.20.0", "yes"))
    base = index.base.replace("//", "//user:se%40cret@")
    assert run(index, data, base=base).returncode == 0
    sent = index.asked[0][1]["Authorization"].removeprefix("Basic ")
    assert base64.b64decode(sent) == b"user:se@cret"
    index.pages["/simple/torch/"] = 500
    done = run(index, data, base=base)
    assert done.returncode == 3
    assert "cret" not in done.stdout + done.stderr


# --- what an index may do wrong ---


def late(handler):
    time.sleep(3)


def dripping(handler):
    handler.send_response(200)
    handler.end_headers()
    for _ in range(40):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.1)


def cut_short(handler):
    handler.answer(b'{"files": []}', length=1000)


def huge(handler):
    handler.send_response(200)
    handler.end_headers()
    for _ in range(34):
        handler.wfile.write(bytes(1 << 20))


def no_http(handler):
    handler.wfile.write(b"\0\0\0 what is this\r\n\r\n")


LISTING, METADATA = "/simple/torch/", f"{wheel('2.13.0')['url']}.metadata"


@pytest.mark.parametrize(
    "path, page, says",
    [
        (LISTING, 500, "HTTP 500"),
        (LISTING, 401, "HTTP 401"),
        (LISTING, 404, "no list of torch's files"),
        (LISTING, b'{"files": [', "is no JSON"),
        (LISTING, b"{" * 100_000, "is no JSON"),
        (LISTING, b"[]", "no list of torch's files"),
        (LISTING, b'{"files": {}}', "no list of torch's files"),
        (LISTING, b'{"files": [{"filename": "torch-2.13.0.whl"}]}', "a file has no name or no URL"),
        (LISTING, b'{"files": [{"filename": "x", "url": "//["}]}', "does not read"),
        (LISTING, b'{"files": [{"filename": "torch-x.whl", "url": "x"}]}', "which CUDA it requires"),
        (LISTING, cut_short, "ends after 13 of 1000 bytes"),
        (LISTING, huge, "larger than 32 MB"),
        (LISTING, late, "no answer within 1 s"),
        (LISTING, dripping, "no answer within 1 s"),
        (LISTING, no_http, ""),
        (METADATA, 503, "HTTP 503"),
        (METADATA, late, "no answer within 1 s"),
        (METADATA, b"<html>Log in</html>", "is no metadata of torch"),
        (METADATA, bytes(range(256)), "is no metadata of torch"),
        ("/pypi/torch/2.12.0/json", b"null", "is no JSON object"),
        ("/pypi/torch/2.12.0/json", b'{"info": {"version": "2.12.0", "requires_dist": [1]}}', "is no list of texts"),
        ("/pypi/torch/json", 502, "HTTP 502"),
    ],
)
def test_an_index_that_cannot_be_read(index, data, path, page, says):
    publish(index, {"2.13.0": cuda13("13.0.2", "9.19.0.48")}, files=[wheel("2.12.0")])
    index.pages[path] = page
    table(data, row("2.13", "13.0", "9.20.0", "yes"))
    before = text_of(data)
    done = run(index, data, "--write", "--timeout", "1" if says.startswith("no answer") else "30")
    assert done.returncode == 3, done.stdout + done.stderr
    assert index.base in done.stderr and says in done.stderr
    assert "--index URL" in done.stderr and "Traceback" not in done.stderr
    assert text_of(data) == before and not (data / "made.json").exists()


def test_nobody_answers(data):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{free.getsockname()[1]}"
    table(data, row("2.13", "13.0", "9.20.0", "yes"))
    done = run(None, data, base=base)
    assert done.returncode == 3
    assert f"{base}/simple/torch/" in done.stderr and "Traceback" not in done.stderr


def test_an_index_does_not_name_files_of_this_machine(index, data):
    publish(index, {}, files=[wheel("2.13.0", url="file:///etc/passwd")])
    table(data, row("2.13", "13.0", "9.20.0", "yes"))
    done = run(index, data)
    assert done.returncode == 3
    assert "is no address of the web" in done.stderr


# --- usage, and writing ---


@pytest.mark.parametrize(
    "arguments",
    [
        ["--frobnicate"],
        ["2.11"],
        ["--timeout", "never"],
        ["--timeout", "0"],
        ["--index", "pypi.org"],
        ["--index", "http://["],
    ],
)
def test_wrong_usage(data, arguments):
    table(data, row("2.13", "13.0", "9.20.0", "yes"))
    done = run(None, data, *arguments)
    assert done.returncode == 2
    assert "update-tables" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "text, says",
    [
        (None, "No such file"),
        ("", "the columns are not"),
        ("a,b\n1,2\n", "the columns are not"),
        (HEADER + "2.11,wheel\n", "the columns are not"),
        (HEADER + row("2.x", "13.0"), "the range '2.x'"),
        (HEADER + row("2.11-", "13.0"), "the range '2.11-'"),
        (HEADER + '2.11,"wheel\n', "unexpected end of data"),
    ],
)
def test_a_table_that_does_not_read(data, text, says):
    if text is not None:
        (data / "pytorch_builds.csv").write_text(text)
    done = run(None, data, base="http://127.0.0.1:9")
    assert done.returncode == 2, done.stderr
    assert "pytorch_builds.csv" in done.stderr and says in done.stderr


def test_a_table_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("before")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(update_tables.os, name, full)
            with pytest.raises(update_tables.Refused, match="No space left"):
                update_tables.write(path, "after")
        assert path.read_text() == "before"
        assert list(tmp_path.iterdir()) == [path]
    update_tables.write(path, "after")
    assert path.read_text() == "after" and list(tmp_path.iterdir()) == [path]


def test_the_table_of_the_repository_reads_and_is_written_as_it_is():
    path = ROOT / "data" / "pytorch_builds.csv"
    rows = update_tables.read_table(path)
    assert update_tables.as_csv(rows) == path.read_text(encoding="utf-8")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", json.loads((ROOT / "data" / "made.json").read_text())["made"])
