"""No number on a page contradicts another: each figure that occurs twice is the same text wherever it stands.

The pages are those of one machine, of eight devices, of a recorded job, of a night and of a gap, as the program makes them.
"""

import collections
import re
import shutil
import sys

import pytest
from night_sessions import Session, launches, nights
from shipped import NODES, ROOT, launchgap

sys.path.insert(0, str(ROOT / "tests" / "reports"))
from html_reader import Node, read

EMPTY = r"launch/null/api:(driver|queue)/mode:(idle|burst)$|matmul/library/size:256/type:fp32"
NUMBER = r"[+−-]?\d[\d,.]*(?: (?:ns|µs|ms|s|%))?"


def plain(node):
    return " ".join(node.text.replace("\xa0", " ").split())


class Figures:
    """What a page says of each quantity of each subject, and where."""

    def __init__(self, page):
        self.root = read(page.read_text(encoding="utf-8"))
        self.found = collections.defaultdict(lambda: collections.defaultdict(list))

    def add(self, subject, quantity, text, where):
        text = text.replace(",", "").strip()
        if text not in ("", "–"):
            self.found[subject, quantity][text].append(where)

    def contradictions(self):
        return {key: dict(texts) for key, texts in self.found.items() if len(texts) > 1}

    def twice(self):
        """The quantities that occur more than once."""
        return {quantity for (_, quantity), texts in self.found.items() if sum(map(len, texts.values())) > 1}

    def section(self, identifier):
        return next((s for s in self.root.all("section") if s.attributes.get("id") == identifier), Node("", {}))

    def rows(self, node, *heads):
        """Of each table below `node` that has these heads, its rows as {head: text}."""
        for table in node.all("table"):
            head = [plain(h) for h in (table.all("thead") or [Node("", {})])[0].all("th")]
            if not {*heads} <= {*head}:
                continue
            for row in table.all("tbody")[0].all("tr"):
                cells = [plain(c) for c in row.children if isinstance(c, Node)]
                yield dict(zip(head, cells, strict=True))

    def sentences(self):
        """(who, text) of each answer on the first screen."""
        (headlines,) = [s for s in self.root.all("section") if s.attributes.get("class") == "headlines"]
        for node in [p for p in headlines.all("p") if "answer" in (p.attributes.get("class") or "")] + headlines.all("li"):
            bold = [plain(b) for b in node.all("strong")]
            yield bold[0].rstrip(":") if bold else "", plain(node)


def of_launch_calls(page):
    """Of each device's empty launch: its quantiles and variation, in the answer, the first table, and the tables below."""
    figures = Figures(page)
    devices = [
        re.sub(r" (steady|unstable|one run|slower|not|no).*", "", r["device"])
        for r in figures.rows(figures.root, "verdict", "launch call")
    ]
    assert devices
    sentence = re.compile(
        rf"A launch call takes ({NUMBER}) \(p50\), and ({NUMBER}) at (p99\.9|p99)\."
        rf"(?: It varies by ({NUMBER}) within a run and by ({NUMBER}) between runs)?"
    )
    for who, text in figures.sentences():
        told = sentence.search(text)
        if not told:
            continue
        device = who if who in devices else devices[0]
        for quantity, value in zip(
            ("p50", told[3], "within a run", "between runs"), (told[1], told[2], told[4], told[5]), strict=True
        ):
            figures.add(device, quantity, value or "", "the answer")
    heads = {"launch call": "p50", "p99.9": "p99.9", "varies within a run": "within a run", "between runs": "between runs"}
    for device, row in zip(devices, figures.rows(figures.root, "verdict", "launch call"), strict=True):
        for head, quantity in heads.items():
            figures.add(device, quantity, row.get(head, ""), "the first table")
    for row in figures.rows(figures.section("launches"), "metric", "level"):
        if row["metric"] == "api_ns" and row["device"] in devices:
            figures.add(row["device"], row["level"], row["variation"], "variation")
    columns = {"median": "p50", "p99": "p99", "p99.9": "p99.9", "cv within": "within a run", "cv between": "between runs"}
    for row in figures.rows(figures.section("cases"), "cv within"):
        case, _, device = row["case"].partition(" ")
        own = re.fullmatch(r"launch/null/api:(driver|queue)/mode:idle", case)
        if own and row["metric"] == "api_ns" and row["arm"] == "plain":
            for column, quantity in columns.items():
                figures.add(device.removesuffix(" · simulated"), quantity, row[column], "all cases")
    return figures


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("agree")


def measured(folder, name, node, *options, runs=3):
    how = ("--filter", EMPTY, "--profile", "quick", "--trace", "off", "--runs", runs, "--no-observer-effect")
    launchgap("run", *how, *options, "-o", name, node=NODES / node, cwd=folder, code=0)
    return folder / name


@pytest.fixture(scope="module")
def one(folder):
    return measured(folder, "one", "one_a100.json")


@pytest.fixture(scope="module")
def eight(folder):
    return measured(folder, "eight", "mixed_8_gpus.json", "--devices", "gpu", runs=2)


def page_of(folder, name, *arguments):
    page = folder / f"{name}.html"
    launchgap("report", *arguments, "-o", page, cwd=folder, code=0)
    return page


MEASURED = {"p50", "p99.9", "within a run", "between runs"}


def test_of_one_machine(one, folder):
    figures = of_launch_calls(page_of(folder, "one", one))
    assert figures.contradictions() == {}
    assert figures.twice() >= MEASURED


def test_of_eight_devices(eight, folder):
    figures = of_launch_calls(page_of(folder, "eight", eight))
    assert figures.contradictions() == {}
    assert figures.twice() >= MEASURED
    assert len({subject for subject, _ in figures.found}) == 8


IDLE = {
    "with work queued": "queued",
    "between a launch call and the start of its work": "launching",
    "waits for the GPU": "waiting",
    "allocates or frees memory": "allocating",
    "is in other calls of CUDA": "other calls",
    "while the program is outside of CUDA": "the program",
}
TAIL = {
    "first launches": "first-launch",
    "queue full": "queue-full",
    "calls of other threads": "overlapping-call",
    "recorder": "recorder",
    "thread off its CPU": "host-pause",
    "slow kernels": "slow-kernel",
    "unexplained": "unexplained",
    "usual calls": "usual",
}


@pytest.mark.parametrize("recording", sorted((ROOT / "tests" / "recordings").glob("*.*.*")), ids=lambda path: path.name)
def test_of_a_job(recording, folder):
    if recording.suffix not in (".gz", ".json", ".sqlite"):
        pytest.skip("no recording")
    name = f"job-{recording.name.partition('.')[0]}"
    assert launchgap("import", recording, "-o", name, cwd=folder).returncode == 0
    figures = of_job(page_of(folder, name, folder / name))
    assert figures.contradictions() == {}
    # What TensorFlow 1 kept has no launches, and of several processes each has an answer of its own.
    expected = {"gpu-perceptron": {"verdict"}, "v100-bert": set()}
    assert figures.twice() >= expected.get(recording.name.partition(".")[0], {"launches", "verdict"})


def of_job(page):
    """Of a recording: launches, idle share and its causes, and where the launch time goes."""
    figures = Figures(page)
    (_, text), *others = figures.sentences()
    if others:  # of several processes, each has its own
        return several_processes(figures)
    job = "the job"
    figures.add(job, "verdict", re.search(r": ([\w -]+)\.", text)[1], "the answer")
    for pattern, quantity in (
        (rf"idle ({NUMBER})", "idle"),
        (rf"({NUMBER}) launch calls? takes? ({NUMBER}), ({NUMBER}) of the recording", "launches"),
    ):
        if told := re.search(pattern, text):
            figures.add(job, quantity, told[1], "the answer")
    for words, head in IDLE.items():
        if told := re.search(rf"({NUMBER}) (?:while )?[\w ]*{words}", text):
            figures.add(job, head, told[1], "the answer")
    for words, cause in TAIL.items():
        if told := re.search(rf"{words} ({NUMBER})(?: \(([\d,]+)\))?", text):
            figures.add(job, cause, told[1], "the answer")
            figures.add(job, f"{cause}, launches", told[2] or "", "the answer")
    (first,) = figures.rows(figures.root, "on an idle stream", "verdict")
    figures.add(job, "launches", first["launches"], "the first table")
    figures.add(
        job,
        "verdict",
        re.match(r"[\w -]+?(?= (?:The|From|Why|Kernels|It|No|Nothing)\b|$)", first["verdict"])[0],
        "the first table",
    )
    section = figures.section("recorded")
    tail = list(figures.rows(section, "device, cause"))
    for row in tail:
        cause = row["device, cause"].split()[-1]
        figures.add(job, cause, row["share"], "where the launch time goes")
        figures.add(job, f"{cause}, launches", row["launches"] if cause != "usual" else "", "where the launch time goes")
    if tail:
        figures.add(job, "launches", str(sum(int(row["launches"]) for row in tail)), "the sum of its causes")
    streams = list(figures.rows(section, "device, stream"))
    if streams:
        figures.add(job, "launches", str(sum(int(row["launches"]) for row in streams)), "the sum of its streams")
    for row in figures.rows(section, "device, time", "GPU idle"):
        if row["device, time"].endswith("the whole recording"):
            figures.add(job, "idle", row["GPU idle"], "what the GPU waits for")
            for head in IDLE.values():
                figures.add(job, head, row[head], "what the GPU waits for")
    of_findings(figures)
    return figures


def several_processes(figures):
    for who, text in figures.sentences():
        figures.add(who, "verdict", who.rpartition(": ")[2].rstrip("."), text)
    return figures


def of_findings(figures):
    """What is at stake, in a finding's sentence and below it."""
    section = figures.section("findings")
    for box in section.all("div", class_="box warning") + section.all("li"):
        text = plain(box)
        stake = re.search(rf"({NUMBER}) of the time at stake", text)
        told = re.search(rf"({NUMBER}) of the recording", text)
        if stake and told:
            figures.add(text[:60], "at stake", stake[1], "below the sentence")
            figures.add(text[:60], "at stake", told[1], "the sentence")


def test_of_a_night(folder):
    place = folder / "nights"
    place.mkdir()
    assert launchgap("history", "add", "nights.db", *nights(place, 30), cwd=place).returncode == 0
    for night in (31, 32, 33):
        session = Session(night=night, medians=launches(2500)).write(place)
        done = launchgap("check", "--history", "nights.db", session.name, cwd=place)
    assert done.returncode == 4
    page = page_of(folder, "night", session, "--history", place / "nights.db")
    figures = Figures(page)
    answers = [text for _, text in figures.sentences()]
    told = re.match(r"(\d+) of \d+ measurements? (?:is|are) slower", answers[0])
    figures.add("the night", "slower", told[1], "the answer")
    verdicts = list(figures.rows(figures.section("nights"), "verdict", "before", "now"))
    slower = [row for row in verdicts if row["verdict"] == "slower"]
    figures.add("the night", "slower", str(len(slower)), "the table of verdicts")
    sentence = re.compile(
        rf"(\S+) is ({NUMBER}) slower than in the sessions before: the [\w ]+ was ({NUMBER}) and is ({NUMBER})\."
    )
    findings = sentence.findall(plain(figures.section("findings")))
    figures.add("the night", "slower", str(len(findings)), "the findings")
    for case, change, before, now in findings:
        for quantity, value in (("change", change), ("before", before), ("now", now)):
            figures.add(case, quantity, value, "the finding")
    for row in slower:
        figures.add(row["case"], "change", row["change"].lstrip("+"), "the table of verdicts")
        figures.add(row["case"], "before", row["before"], "the table of verdicts")
        figures.add(row["case"], "now", row["now"], "the table of verdicts")
    for caption in figures.section("nights").all("figure"):
        label = caption.all("svg")[0].attributes["aria-label"].replace("\xa0", " ")
        if label.endswith("slower"):
            figures.add(
                label.split(" of ")[1].split(",")[0], "now", re.search(rf"the last ({NUMBER})", label)[1], "its figure"
            )
    assert figures.contradictions() == {}
    assert figures.twice() >= {"slower", "change", "before", "now"}


def test_of_a_gap(one, eight, folder):
    other = folder / "other"
    shutil.copytree(one, other, dirs_exist_ok=True)
    page = page_of(folder, "gap", eight, other)
    figures = of_launch_calls(page)
    assert figures.contradictions() == {}
    compared = 0
    for family in figures.section("gap").all("table", class_="compare"):
        for row in family.all("tbody")[0].all("tr"):
            cells = [c for c in row.children if isinstance(c, Node) and c.tag == "td"]
            values = [c.attributes.get("title", "").split(" ")[0] if c.all("b") else "" for c in cells]
            compared += ratios(plain(row.all("th")[0]), cells, values)
    assert compared > 20


def ratios(case, cells, values):
    """How many values have a ratio beside them; each is that of the value and the reference's."""
    compared = 0
    has_verdict = [any("verdict" in (s.attributes.get("class") or "") for s in cell.all("span")) for cell in cells]
    reference = next((float(v) for v, judged in zip(values, has_verdict, strict=True) if v and not judged), None)
    for i, (cell, value) in enumerate(zip(cells, values, strict=True)):
        told = re.search(r"([\d.]+)× (faster|slower)", plain(cell)) if value and reference else None
        if told:
            ratio = max(float(value) / reference, reference / float(value))
            digits = len(told[1].partition(".")[2])
            compared += 1
            assert abs(ratio - float(told[1])) <= 0.51 * 10**-digits, (case, i, plain(cell), values)
    return compared
