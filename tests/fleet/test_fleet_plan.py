"""`launchgap fleet plan`: what a night costs is said before it is submitted."""

import re

from shipped import launchgap


def minutes(text):
    units = {"h": 60, "min": 1, "s": 1 / 60}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+) (h|min|s)\b", text))


def planned(tmp_path, *arguments):
    out = launchgap("fleet", "plan", *arguments, "--results", tmp_path / "r", "-o", tmp_path / "plan", code=0).stdout
    return " ".join(out.split())


def test_launches_of_eight_gpus_cost_eight_times_the_others_once(tmp_path):
    said = planned(tmp_path, "n[1-3]:8", "m1:2")
    assert "4 nodes with 26 GPUs, 5 sessions of each" in said
    node, one = re.search(r"with 8 GPUs takes about (.*?), of one GPU alone (.*?):", said).groups()
    assert minutes(one) < minutes(node) < 8 * minutes(one)
    assert "launches and allocations are timed one GPU after the other" in said
    assert "Slurm's limit is 01:00:00" in said


def test_what_goes_side_by_side_costs_once(tmp_path):
    said = planned(tmp_path, "n[1-3]:8", "--filter", "^matmul/library")
    node, one = re.search(r"with 8 GPUs takes about (.*?), of one GPU alone (.*?):", said).groups()
    assert minutes(node) < 1.1 * minutes(one)


def test_of_one_gpu_there_is_nothing_to_wait_for(tmp_path):
    said = planned(tmp_path, "n1:1")
    assert "with 1 GPU takes about" in said and "after the other" not in said


def test_a_filter_that_nothing_passes_is_found_before_the_night(tmp_path):
    done = launchgap("fleet", "plan", "n1:1", "--filter", "^x", "--results", tmp_path, "-o", tmp_path / "p", code=2)
    assert "no case passes" in done.stderr
    assert not (tmp_path / "p").exists()
