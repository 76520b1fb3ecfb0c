"""A Slurm of a test's own: the real daemons, with several virtual nodes on this host, beside any Slurm of the system.

It takes the programs of Debian's slurmd, slurmctld, slurm-client and munge, and no rights but the user's own.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
START_UP_S = 30
DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")

# MinJobAge: there is no accounting, and what has become of a job is asked of the controller.
# JobRequeue: what a dead node ran stays dead.
# The intervals are as short as they get, so that arrays and dependencies go on at once.
# Of time limits see PrivateSlurm.time_out().
SLURM_CONF = """\
ClusterName=private
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmUser={user}
SlurmdUser={user}
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog={folder}/task_prolog
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,bf_continue
ReturnToService=2
MpiDefault=none
GresTypes=gpu
JobRequeue=0
MinJobAge=86400
KillWait=2
OverTimeLimit=0
CompleteWait=0
MessageTimeout=20
{nodes}
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = (
    "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} Boards=1 SocketsPerBoard=1"
    " CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory=4000 Gres=gpu:{kind}:{gpus} State=UNKNOWN"
)
GRES = "NodeName={name} Name=gpu Type={kind} File={folder}/devices.{name}/gpu[0-{last}]"
ENDED = frozenset("BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED TIMEOUT".split())


@dataclass(frozen=True)
class VirtualNode:
    """`environment` is what each task on the node gets, a batch script too. What a batch script has, each srun within it
    inherits: no LD_PRELOAD that srun itself could not bear."""

    name: str
    kind: str
    gpus: int
    environment: Mapping[str, object] = field(default_factory=dict)
    cpus: int = 8


class Ended(NamedTuple):
    state: str
    code: int
    signal: int = 0


def _program(name: str) -> str | None:
    return shutil.which(name, path=PATH)


def why_not() -> str | None:
    """Why there can be no private Slurm here, in one line; None where there can."""
    if missing := [
        name for name in "munged slurmctld slurmd srun sbatch scontrol sinfo setpriv".split() if not _program(name)
    ]:
        return f"{', '.join(missing)} not installed: Debian's packages are slurmd, slurmctld, slurm-client and munge"
    return None


class PrivateSlurm:
    """A context manager: the daemons run within it, and at its end, or that of this process, they and all jobs are killed.

    `folder` is where the commands are run, and so where sbatch leaves what its jobs say. What Slurm itself needs is in
    another, short one, since paths of sockets must be short; it is removed at the end. With `plain_files`, gres.conf names
    plain files where there should be devices: slurmd then grants GPUs, and leaves CUDA_VISIBLE_DEVICES unset. `settings`
    are further lines of slurm.conf."""

    def __init__(
        self, folder: Path, nodes: Sequence[VirtualNode], *, plain_files: bool = False, settings: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        self.nodes = tuple(nodes)
        self.plain_files = plain_files
        self.settings = tuple(settings)
        self.environment: dict[str, str] = {}
        self._closing = contextlib.ExitStack()

    def __enter__(self) -> PrivateSlurm:
        with self._closing as closing:
            own = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
            closing.callback(shutil.rmtree, own, ignore_errors=True)
            ports = closing.enter_context(_ports(1 + len(self.nodes)))
            self._own = own
            self._write_configuration(ports)
            self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH", "SRUN"))}
            self.environment |= {"SLURM_CONF": str(own / "slurm.conf"), "PATH": PATH}
            with (own / "log" / "keeper").open("wb") as said:
                keeper = subprocess.Popen(
                    [sys.executable, __file__, own, *(node.name for node in self.nodes)],
                    stdin=subprocess.PIPE,
                    stdout=said,
                    stderr=said,
                    env=self.environment,
                    start_new_session=True,  # what ends the tests by a signal to their group leaves it to tidy up
                )
            closing.callback(_stop, keeper)
            self._wait_until_idle(keeper)
            self._closing = closing.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    # --- what a test does ---

    def run(
        self, *command: object, timeout: float = 60, check: bool = True, **extra: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs srun, sinfo, scontrol, … in `folder`, with `extra` in its environment."""
        done = subprocess.run(
            [*DIES_WITH_PARENT, *map(str, command)],
            cwd=self.folder,
            env=self.environment | extra,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert not check or done.returncode == 0, (
            f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}{self.logs()}"
        )
        return done

    def submit(self, *arguments: object, **extra: str) -> str:
        """sbatch; the job's id."""
        return self.run("sbatch", "--parsable", *arguments, **extra).stdout.strip()

    def jobs(self, job: str) -> dict[str, dict[str, str]]:
        """What scontrol shows of a job, or of each task of an array: by its name, `12` or `12_0`."""
        shown = {}
        for line in self.run("scontrol", "--oneliner", "show", "job", job).stdout.splitlines():
            of = dict(re.findall(r"(\w+)=(\S*)", line))
            shown[f"{of['ArrayJobId']}_{of['ArrayTaskId']}" if "ArrayTaskId" in of else of["JobId"]] = of
        return shown

    def wait(self, *jobs: str, timeout: float = 120) -> dict[str, Ended]:
        """How these jobs ended, once they all have; of an array, each of its tasks."""
        until = time.monotonic() + timeout
        while True:
            shown = {name: of for job in jobs for name, of in self.jobs(job).items()}
            if all(of["JobState"] in ENDED for of in shown.values()):
                return {name: Ended(of["JobState"], *map(int, of["ExitCode"].split(":"))) for name, of in shown.items()}
            if time.monotonic() > until:
                raise TimeoutError(
                    f"after {timeout} s: { {n: (o['JobState'], o['Reason']) for n, o in shown.items()} }{self.logs()}"
                )
            time.sleep(0.1)

    def time_out(self, job: str) -> None:
        """Its time limit is now, which Slurm finds within 30 s: so often it looks, from its start on, and nothing makes it
        look sooner. To begin with it would be a minute, since --time=0:10 is rounded up; --signal=TERM@60 beside --time=1
        also comes when Slurm looks for the first time. What a job gets is what scancel gives it at once: SIGCONT and
        SIGTERM for its steps and its script, and SIGKILL after KillWait. Only the state differs, TIMEOUT for CANCELLED."""
        self.run("scontrol", "update", f"JobId={job}", "EndTime=now+1")

    def drain(self, node: str, reason: str) -> None:
        self.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}")

    def resume(self, node: str) -> None:
        self.run("scontrol", "update", f"NodeName={node}", "State=RESUME")

    def logs(self, lines: int = 15) -> str:
        """The last lines of each daemon."""
        said = (
            (path.name, path.read_text(errors="replace").splitlines()[-lines:])
            for path in sorted((self._own / "log").iterdir())
        )
        return "".join(f"\n--- {name}\n" + "\n".join(text) for name, text in said if text)

    # --- how it is made ---

    def _write_configuration(self, ports: Sequence[int]) -> None:
        own, port = self._own, iter(ports)
        for folder in ("munge", "state", "log", *(f"spool.{node.name}" for node in self.nodes)):
            (own / folder).mkdir()
        (own / "munge" / "key").write_bytes(os.urandom(128))
        (own / "munge" / "key").chmod(0o600)
        every = {"folder": own, "host": socket.gethostname().split(".")[0], "user": os.geteuid(), "port": next(port)}
        nodes, gres = [], []
        for node in self.nodes:
            of = every | vars(node) | {"port": next(port), "last": node.gpus - 1}
            nodes.append(NODE.format(**of))
            gres.append(GRES.format(**of))
            devices = own / f"devices.{node.name}"
            devices.mkdir()
            for gpu in range(node.gpus):
                if self.plain_files:
                    (devices / f"gpu{gpu}").touch()
                else:  # slurmd asks only whether it is a character device, and follows links
                    (devices / f"gpu{gpu}").symlink_to("/dev/null")
            exports = [f"export {name}={value}\n" for name, value in node.environment.items()]
            (own / f"environment.{node.name}").write_text("".join(exports))
        (own / "slurm.conf").write_text(SLURM_CONF.format(**every, nodes="\n".join((*self.settings, *nodes))))
        (own / "gres.conf").write_text("\n".join(gres) + "\n")
        prolog = own / "task_prolog"
        prolog.write_text(f'#!/bin/sh\ncat "{own}/environment.$SLURMD_NODENAME"\n')
        prolog.chmod(0o755)

    def _wait_until_idle(self, keeper: subprocess.Popen) -> None:
        until = time.monotonic() + START_UP_S
        while True:
            shown = self.run("sinfo", "--noheader", "--Node", "--format=%N %T", check=False)
            if sorted(shown.stdout.split("\n")[:-1]) == sorted(f"{node.name} idle" for node in self.nodes):
                return
            if time.monotonic() > until or (self._own / "log" / "ended").exists() or keeper.poll() is not None:
                raise RuntimeError(f"Slurm did not start:\n{shown.stdout}{shown.stderr}{self.logs()}")
            time.sleep(0.1)


def _stop(keeper: subprocess.Popen) -> None:
    keeper.stdin.close()
    try:
        keeper.wait(15)
    except subprocess.TimeoutExpired:
        keeper.kill()
        keeper.wait()


@contextlib.contextmanager
def _ports(count: int) -> Iterator[list[int]]:
    """Ports that nobody else takes: each stays bound here, in such a way that a daemon, which sets SO_REUSEADDR too, can
    listen there. Those below 32768 are not given to whoever connects."""
    with contextlib.ExitStack() as closing:
        found = []
        while len(found) < count:
            held = closing.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                held.bind(("", random.randint(20000, 32000)))
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                found.append(held.getsockname()[1])
        yield found


# --- the keeper: a process of its own, whose standard input ends when the daemons are to, or when the tests have died ---


def _keep(own: Path, nodes: Sequence[str]) -> None:
    """Runs the daemons, is the parent of what they leave, and at the end kills all and removes `own`."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    daemons = {}

    def start(name: str, *command: str) -> None:
        with (own / "log" / name).open("wb") as said:
            process = subprocess.Popen([*DIES_WITH_PARENT, *command], stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        daemons[process.pid] = name

    def bury() -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if name := daemons.get(ended[0]):
                    with (own / "log" / "ended").open("a") as file:
                        file.write(f"{name}: exit code {os.waitstatus_to_exitcode(ended[1])}\n")

    def goes_on(seconds: float) -> bool:
        bury()
        return not select.select([sys.stdin], [], [], seconds)[0]

    munge = own / "munge"
    start(
        "munged", "munged", "--foreground", "--force", f"--socket={munge / 'socket'}", f"--key-file={munge / 'key'}",
        f"--pid-file={munge / 'pid'}", f"--seed-file={munge / 'seed'}",
    )  # fmt: skip
    while not (munge / "socket").exists() and not (own / "log" / "ended").exists() and goes_on(0.01):
        pass
    start("slurmctld", "slurmctld", "-D", "-f", f"{own}/slurm.conf")
    for node in nodes:
        start(f"slurmd.{node}", "slurmd", "-D", "-f", f"{own}/slurm.conf", "-N", node)
    while goes_on(0.2):
        pass
    # Slurm's daemons, and the tasks of jobs that run, may end by themselves; whoever is left after a second may not.
    begin = time.monotonic()
    for polite in itertools.chain([True], itertools.repeat(False)):
        if not (left := _descendants()):
            break
        if polite or time.monotonic() > begin + 1:
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGTERM if polite else signal.SIGKILL)
        bury()
        time.sleep(0.02)
    shutil.rmtree(own, ignore_errors=True)


def _descendants() -> list[int]:
    """Of this process; those that have died and are not buried too."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found = [os.getpid()]
    for process in found:
        found += children.get(process, [])
    return found[1:]


if __name__ == "__main__":
    _keep(Path(sys.argv[1]), sys.argv[2:])
