"""Launchgap's allocators against the models, event by event, on random traces."""

from __future__ import annotations

import random
import subprocess

import pytest
from allocator_models import MIB, MODELS
from shipped import BUILD

TRACES = 1000


def random_size(rng: random.Random) -> int:
    """Around every step of the rules, and anywhere between."""
    kind = rng.randrange(4)
    if kind == 0:
        step = rng.choice([256, 512, 1 << 16, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 128 * MIB])
        return max(1, step + rng.choice([-1, 0, 1, -256, 256, 512]))
    if kind == 1:
        return rng.randint(1, 4096)
    if kind == 2:
        return rng.randint(1, 3 * MIB)
    return int(2 ** rng.uniform(0, 27))


def random_trace(seed: int) -> tuple[int, list[tuple]]:
    """A limit, and what is asked for: ("a", id, bytes, stream) and ("f", id)."""
    rng = random.Random(seed)
    limit = rng.choice([64, 200, 512, 1024, 4096]) * MIB + rng.choice([0, 0, 1, 255, 256, 300, 511, 4095])
    streams = rng.choice([1, 1, 3])
    likes_to_free = rng.uniform(0.2, 0.6)
    live: list[int] = []
    events: list[tuple] = []
    for number in range(rng.randint(20, 120)):
        if live and rng.random() < likes_to_free:
            events.append(("f", live.pop(rng.randrange(len(live)))))
        else:
            events.append(("a", number, random_size(rng), rng.randrange(streams)))
            live.append(number)
    return limit, events


def text_of(trace: tuple[int, list[tuple]]) -> str:
    limit, events = trace
    return "".join([f"t {limit}\n", *(" ".join(map(str, event)) + "\n" for event in events)])


def answers_of(model_of, trace: tuple[int, list[tuple]]) -> list[str]:
    limit, events = trace
    model, blocks, answers = model_of(limit), {}, []
    for event in events:
        where = "- -"
        if event[0] == "a":
            block = model.allocate(event[2], event[3])
            if block is not None:
                blocks[event[1]] = block
                where = f"{block[1].address} {block[1].size}"
            else:
                where = "fail -"
        elif event[1] in blocks:
            model.release(blocks.pop(event[1]))
        answers.append(f"{where} " + " ".join(map(str, model.state())))
    return answers


@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_the_model_event_by_event(name):
    traces = [random_trace(seed) for seed in range(TRACES)]
    done = subprocess.run(
        [BUILD / "bin" / "allocation_probe", name],
        input="".join(map(text_of, traces)),
        capture_output=True,
        text=True,
        check=True,
    )
    lines = iter(done.stdout.splitlines())
    compared = failed = 0
    for seed, trace in enumerate(traces):
        for event, expected in zip(trace[1], answers_of(MODELS[name], trace), strict=True):
            assert next(lines) == expected, (seed, event)
            compared += 1
            failed += expected.startswith("fail")
    assert next(lines, None) is None
    assert compared > 30 * TRACES and failed > TRACES / 10  # and where there is no room they agree too
