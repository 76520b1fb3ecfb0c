"""What code of the host's libraries for older CPUs gets out of this one: each code in processes of its own, in effect and
recorded; what the CPU cannot execute is not tried; and what is said of a library that does not know the CPU."""

import re
import subprocess
from pathlib import Path

import pytest
from shipped import launchgap, records, table

FLAGS = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[1].split())
needs_avx2 = pytest.mark.skipif(not {"avx2", "fma"} <= FLAGS, reason="this CPU has no code that is newer")


@pytest.fixture(scope="module")
def fake_openblas(tmp_path_factory):
    """The real one behind another interface: fake_openblas.c."""
    library = tmp_path_factory.mktemp("fake") / "libfake.so"
    source = Path(__file__).with_name("fake_openblas.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return str(library)


def by_case(session):
    """The rows of a session by benchmark and code; each case has one row per metric, alike but for the numbers."""
    rows = table(session / "summary.csv")
    return {(row["benchmark"], *re.findall(r"code:(\w+)", row["params"])): row for row in rows}


def loaded(session, process_config):
    """The codes of the libraries that the processes of a process configuration loaded, and the variables that they had."""
    runs = [file for file in records(session).values() if file[0]["process_config"] == process_config]
    assert runs, f"no run of {process_config}"
    codes = {library.get("code") for file in runs for library in file[-1]["libraries"]}
    told = ("OPENBLAS_CORETYPE", "ONEDNN_MAX_CPU_ISA")
    return codes, [{name: v for name, v in file[0]["environment"].items() if name in told} for file in runs]


def findings(session, code):
    return [finding for finding in table(session / "findings.csv") if finding["code"] == code]


@needs_avx2
def test_each_code_is_in_effect_in_its_own_processes_alone(run):
    _, session = run("matmul/library/size:256|/code/code:(own|prescott|haswell|sse41|avx2)/")
    for benchmark, code, name, variable in (
        ("matmul", "prescott", "Prescott", "OPENBLAS_CORETYPE"),
        ("matmul", "haswell", "Haswell", "OPENBLAS_CORETYPE"),
        ("convolution", "sse41", "SSE41", "ONEDNN_MAX_CPU_ISA"),
        ("convolution", "avx2", "AVX2", "ONEDNN_MAX_CPU_ISA"),
    ):
        row = by_case(session)[f"{benchmark}/code", code]
        assert row["status"] == "ok", row["reason"]
        codes, variables = loaded(session, f"{benchmark}+code={code}")
        assert codes == {name}
        assert variables == [{variable: name}]
    assert "Haswell kernels" in by_case(session)["matmul/code", "haswell"]["method"]
    for process_config in ("matmul", "matmul+code=own", "convolution+code=own"):
        assert loaded(session, process_config)[1] == [{}]
    assert loaded(session, "matmul")[0] == loaded(session, "matmul+code=own")[0]


@needs_avx2
def test_the_users_own_choice_stays_and_is_said(run):
    done, session = run("matmul/library/size:256|matmul/code/code:(own|haswell)/", OPENBLAS_CORETYPE="Nehalem")
    for process_config in ("matmul", "matmul+code=own"):
        codes, variables = loaded(session, process_config)
        assert codes == {"Nehalem"}
        assert variables == [{"OPENBLAS_CORETYPE": "Nehalem"}]
    assert loaded(session, "matmul+code=haswell")[0] == {"Haswell"}
    (found,) = findings(session, "old-library-code")
    assert found["severity"] == "distorts"
    assert found["sentence"].startswith("OPENBLAS_CORETYPE=Nehalem makes OpenBLAS")
    assert found["remedy"].startswith("Unset OPENBLAS_CORETYPE")
    assert "OPENBLAS_CORETYPE=Nehalem makes OpenBLAS" in " ".join(done.stdout.split())


@needs_avx2
def test_a_library_that_does_not_know_the_cpu_is_on_the_first_screen(run, fake_openblas):
    done, session = run("matmul/library/size:256", LAUNCHGAP_OPENBLAS=fake_openblas, FAKE_CORE="Prescott")
    (found,) = findings(session, "old-library-code")
    assert "does not know this CPU and runs its code for Prescott (2004)" in found["sentence"]
    assert re.match(r"Set OPENBLAS_CORETYPE=(Haswell|SkylakeX) for", found["remedy"])
    first = done.stdout.partition("What to do first:")[2]
    assert "does not know this CPU" in " ".join(first.split())


@needs_avx2
def test_a_code_that_is_not_in_effect_is_unsupported(run, fake_openblas):
    _, session = run("matmul/code/code:(nehalem|haswell)/", LAUNCHGAP_OPENBLAS=fake_openblas, FAKE_CORE="Nehalem")
    assert by_case(session)["matmul/code", "nehalem"]["status"] == "ok"
    row = by_case(session)["matmul/code", "haswell"]
    assert row["status"] == "unsupported"
    assert "OPENBLAS_CORETYPE=Haswell was asked for, and OpenBLAS 0.0.1 runs its code for Nehalem" in row["reason"]


@needs_avx2
def test_a_worker_that_was_not_told_says_so():
    done = launchgap(
        "worker", "--device", "host", "--benchmark_filter=matmul/code/code:(own|prescott)/", OPENBLAS_CORETYPE="Nehalem"
    )
    assert "this process was started without OPENBLAS_CORETYPE=Prescott" in done.stdout + done.stderr
    assert re.search("code:own/size.*tflops=", done.stdout)


@pytest.mark.skipif("fma4" in FLAGS, reason="this CPU has what no other has")
def test_what_the_cpu_cannot_execute_is_never_loaded(run):
    _, session = run("matmul/code/code:bulldozer/", "--profile", "full")
    row = by_case(session)["matmul/code", "bulldozer"]
    assert (row["status"], row["reason"]) == (
        "unsupported",
        "code for Bulldozer (2011) needs AVX and FMA4, which this CPU lacks",
    )
    assert loaded(session, "matmul+code=bulldozer") == (set(), [{}])


@needs_avx2
def test_an_illegal_instruction_ends_its_own_case_alone(run, fake_openblas):
    _, session = run(
        "matmul/code/code:(prescott|haswell)/", code=3, LAUNCHGAP_OPENBLAS=fake_openblas, FAKE_ILLEGAL="Haswell"
    )
    assert by_case(session)["matmul/code", "prescott"]["status"] == "ok"
    row = by_case(session)["matmul/code", "haswell"]
    assert row["status"] == "failed"
    assert "SIGILL" in row["reason"]


@needs_avx2
@pytest.mark.compares_times
def test_what_each_code_gets_is_said_and_drawn(run, fake_openblas, tmp_path):
    done, session = run(
        "matmul/code/code:(own|prescott|haswell)/", runs=3, LAUNCHGAP_OPENBLAS=fake_openblas, FAKE_SLOW="Prescott"
    )
    said = " ".join(done.stdout.split())
    sentence = re.search(
        r"Code for a CPU of 2004 \(Prescott\) gets [\d.]+ GFLOP/s of FP32 products out of this one, of 2013 \(Haswell\) "
        r"[\d.]+ GFLOP/s: the newest is ([\d.]+) times as fast as the oldest\.",
        said,
    )
    assert sentence, said
    assert float(sentence[1]) > 2
    assert re.search(r"Set OPENBLAS_CORETYPE=Haswell: FP32 products are then [\d.]+ times as fast", said)
    page = tmp_path / "page.html"
    assert launchgap("report", session, "-o", page).returncode == 0
    html = page.read_text(encoding="utf-8")
    assert sentence[0] in html
    assert '<section id="costs">' not in html, "it is not about launches"
    html = html.partition('<section id="library-code">')[2].partition("</section>")[0]
    assert "What does code for older CPUs get out of this one, in matrix products?" in html
    assert "2004 Prescott" in html
    assert "2013 Haswell" in html
