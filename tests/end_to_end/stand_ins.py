"""Programs that stand in for nsys and ncu: they take only what NVIDIA documents, see for themselves whether the ranges that
they are told of exist, and write what the real ones would. Run by their names; what goes wrong is chosen by STAND_IN.

Options: Nsight Systems User Guide, "CLI Profile Command Switch Options" and "CLI Export Command Switch Options"; Nsight
Compute CLI, "Command Line Options" and "NVTX Filtering"."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
LISTENER = HERE.parents[1] / "build" / "nvtx" / "libnvtx_listener.so"

TRACES = "cuda|nvtx|cublas|cublas-verbose|cudnn|osrt|mpi|openacc|openmp|opengl|vulkan|none"
NSYS_PROFILE = {
    "--trace": f"({TRACES})(,({TRACES}))*",
    "--sample": "process-tree|system-wide|cpu|none",
    "--cpuctxsw": "process-tree|system-wide|none",
    "--capture-range": "none|cudaProfilerApi|hotkey|nvtx",
    "--nvtx-capture": r"[^@]+(@[^@]+)?",  # range@domain
    "--capture-range-end": r"none|stop|stop-shutdown|repeat(:\d+)?|repeat-shutdown(:\d+)?",
    "--kill": r"none|sigkill|sigterm|\d+",
    "--cuda-graph-trace": "(graph|node)(:(host-and-device|host-only))?",
    "--output": ".+",
}
NSYS_EXPORT = {"--type": "arrow|arrowdir|hdf|info|json|parquetdir|sqlite|text", "--output": ".+"}
NCU = {
    "--nvtx": None,  # has no value
    "--nvtx-include": ".+",
    "--launch-count": r"\d+",
    "--target-processes": "application-only|all",
    "--set": "basic|detailed|full|nvlink|pmsampling|roofline",
    "--export": ".+",
}


def fail(text: str) -> None:
    print(f"stand-in: {text}", file=sys.stderr)
    sys.exit(64)


def options_of(arguments: list[str], known: dict[str, str | None]) -> tuple[dict[str, str], list[str]]:
    """What is asked for, and what stands behind: the program with its own arguments."""
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        name, equals, value = rest.pop(0).partition("=")
        if name not in known:
            fail(f"{name} is no documented option")
        if name in found:
            fail(f"{name} is there twice")
        pattern = known[name]
        if pattern is None:
            value = ""
        elif not equals:
            value = rest.pop(0)
        if pattern is not None and not re.fullmatch(pattern, value):
            fail(f"{name} cannot be '{value}'")
        found[name] = value
    return found, rest


def run_watched(command: list[str], variables: dict[str, str], log: Path) -> int:
    if not command or not os.access(command[0], os.X_OK):
        fail(f"the application {command[:1]} cannot be executed")
    heard = {"NVTX_INJECTION64_PATH": str(LISTENER), "LAUNCHGAP_NVTX_LOG": str(log)} if LISTENER.exists() else {}
    return subprocess.run(command, env=os.environ | variables | heard).returncode


def must_have_come(name: str, domain: str, log: Path) -> None:
    """A range that never comes captures nothing, without an error: so is the real tools' way."""
    if LISTENER.exists() and not re.search(rf"^push {domain} {re.escape(name)} ", log.read_text(), re.MULTILINE):
        fail(f"no range {name} of domain {domain} came")


def session_of(command: list[str]) -> str:
    return str(Path(command[command.index("-o") + 1]).resolve())


def nsys_profile(arguments: list[str], how: str) -> int:
    options, command = options_of(arguments, NSYS_PROFILE)
    if "--nvtx-capture" in options and options.get("--capture-range") != "nvtx":
        fail("--nvtx-capture applies only with --capture-range=nvtx")
    if options.get("--capture-range-end", "stop-shutdown") != "stop" or options.get("--kill", "sigterm") != "none":
        fail("this ends the application with the capture range")
    log = Path(options["--output"] + ".log")
    code = run_watched(command, {"NSYS_PROFILING_SESSION_ID": "1"} if how != "unseen" else {}, log)
    name, _, domain = options["--nvtx-capture"].partition("@")
    must_have_come(name, domain, log)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "waits":
        Path(options["--output"] + ".waits").touch()
        time.sleep(60)
    if how != "no-report":
        Path(options["--output"] + ".nsys-rep").write_text(json.dumps(session_of(command)))
    return code


def nsys_export(arguments: list[str], how: str) -> int:
    options, rest = options_of(arguments, NSYS_EXPORT)
    if how == "no-export":
        fail("the export failed")
    from nsys_reports import Times, write_report

    (report,) = rest
    session = Path(json.loads(Path(report).read_text()))
    metric = "roundtrip_ns" if "roundtrip_ns" in next(session.glob("records/*")).read_text() else None
    write_report(
        Path(options["--output"]),
        session,
        metric=metric,
        times=lambda sample: Times().plus("queue", 9_000 if sample.slow else 0),
    )
    return 0


def ncu(arguments: list[str], how: str) -> int:
    options, command = options_of(arguments, NCU)
    if "--nvtx-include" in options and "--nvtx" not in options:
        fail("--nvtx-include needs --nvtx")
    domain, _, name = options["--nvtx-include"].partition("@")  # the opposite order of nsys
    if not name.endswith("/") or re.search(r"[@,\[\]*+/]", name[:-1]):
        fail("a push/pop range ends with a slash, and quantifiers in its name must be escaped")
    log = Path(options["--export"] + ".log")
    code = run_watched(command, {"NV_NSIGHT_INJECTION_PORT_BASE": "49152"}, log)
    must_have_come(name[:-1], domain, log)
    if how != "no-report":
        Path(options["--export"] + ".ncu-rep").write_text(session_of(command))
    return code


def main() -> int:
    sys.path.insert(0, str(HERE))
    how = os.environ.get("STAND_IN", "")
    if how == "fails":
        fail("it cannot profile here")
    tool, *arguments = [Path(sys.argv[1]).name, *sys.argv[2:]]
    if tool == "ncu":
        return ncu(arguments, how)
    kind, *arguments = arguments
    return {"profile": nsys_profile, "export": nsys_export}[kind](arguments, how)


if __name__ == "__main__":
    sys.exit(main())
