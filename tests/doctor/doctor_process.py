"""The doctor as a process of its own, byte for byte: for tests of what it passes through and of what it survives."""

import dataclasses
import json
import os
import subprocess
import time

from sick_machine import LAUNCHGAP


def environment(machine, **extra):
    """The environment in which a machine of the tests is asked; None takes a variable away. Bytes are possible."""
    node = machine.root / "node.json"
    node.parent.mkdir(parents=True, exist_ok=True)
    node.write_text(json.dumps(machine.node))
    drop = ("CUDA_", "LAUNCHGAP_", "NVIDIA_", "LD_", "VIRTUAL_ENV", "CONDA_PREFIX", "NO_COLOR")
    env = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
    env |= {"LAUNCHGAP_FAKE_NODE": str(node), "LAUNCHGAP_SYSTEM_ROOT": str(machine.root)}
    env |= machine.environment | extra
    return {os.fsencode(key): os.fsencode(value) for key, value in env.items() if value is not None}


@dataclasses.dataclass
class Done:
    code: int
    out: bytes
    err: bytes
    seconds: float

    @property
    def answer(self):
        return json.loads(self.out)


def doctor(machine, *arguments, stdin=b"", timeout=60, command=(), cwd=None, binary=LAUNCHGAP, **extra):
    """Runs it to its end."""
    begin = time.monotonic()
    done = subprocess.run(
        [*command, binary, "doctor", *(a if isinstance(a, bytes) else str(a) for a in arguments)],
        input=stdin,
        capture_output=True,
        timeout=timeout,
        cwd=cwd,
        env=environment(machine, **extra),
    )
    return Done(done.returncode, done.stdout, done.stderr, time.monotonic() - begin)


def started(machine, *arguments, command=(), **options):
    """Starts it and does not wait."""
    return subprocess.Popen(
        [*command, LAUNCHGAP, "doctor", *map(str, arguments)],
        env=environment(machine, **options.pop("variables", {})),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )
