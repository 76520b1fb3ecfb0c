"""launchgap as a test of ReFrame: one process per GPU of a node, and the slowest GPU of each as performance.

    reframe -c ci/reframe/launchgap.py -r --distribute=idle --performance-report \\
        -S launchgap=/opt/launchgap/bin/launchgap -S gpus=8

It fails where a GPU was not measured or a case failed. Slower than before is what `launchgap check` finds, over nights and
with their noise; fixed limits can stand in a site's own `reference`. ReFrame itself ends with 0 where it found no test at
all: have the job look for `Ran N/N` with N above 0.
"""

import csv
import os

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import deferrable, run_after, run_before, sanity_function, variable

# Of which metrics the slowest GPU is reported.
METRICS = ("api_ns", "roundtrip_ns")


@rfm.simple_test
class LaunchgapTest(rfm.RunOnlyRegressionTest):
    descr = "What launches cost on each GPU"
    valid_systems = ["+gpu"]  # noqa: RUF012
    valid_prog_environs = ["*"]  # noqa: RUF012
    time_limit = "1h"

    launchgap = variable(str, value="launchgap")
    gpus = variable(int, value=1)
    profile = variable(str, value="nightly")
    case_filter = variable(str, value="^launch/null/api:driver/mode:idle$")
    run_options = variable(typ.List[str], value=[])

    @run_after("init")
    def set_command(self):
        self.executable = self.launchgap
        options = ["--devices", "gpu", "--profile", self.profile, "--filter", f"'{self.case_filter}'", "--no-report"]
        self.executable_opts = ["run", *options, *self.run_options, "-o", "sessions"]
        self.postrun_cmds = [f"{self.launchgap} merge sessions --ended -o merged"]

    @run_before("run")
    def one_task_per_gpu(self):
        self.num_tasks = self.num_tasks_per_node = self.gpus
        self.job.options += ["--gpus-per-task=1", "--exclusive"]
        self.job.launcher.options = ["--gpus-per-task=1", "--kill-on-bad-exit=0"]

    @sanity_function
    def every_gpu_is_measured(self):
        rows = self._rows()
        return sn.all(
            [
                sn.assert_eq(len({row["device_id"] for row in rows}), self.num_tasks, "{0} GPUs were measured, of {1}"),
                sn.assert_eq([row["reason"] for row in rows if row["status"] != "ok"], [], "a case failed: {0}"),
                sn.assert_found(rf"^{self.num_tasks} sessions? of", self.stdout, "what `merge` found is not all"),
            ]
        )

    @run_before("performance")
    def report_slowest(self):
        self.perf_variables = {
            self._name(row): sn.make_performance_function(self._slowest(self._name(row)), "ns")
            for row in self._rows()
            if row["metric"] in METRICS
        }

    @staticmethod
    def _name(row):
        """`launch.null.api=driver.mode=idle.api_ns`: to ReFrame a colon and a slash mean something."""
        return ".".join((row["benchmark"], row["params"], row["metric"])).replace("/", ".").replace(":", "=")

    @deferrable
    def _slowest(self, name):
        return max(float(row["p50"]) for row in self._rows() if self._name(row) == name and row["p50"])

    def _rows(self):
        """The summary of each process, as one."""
        sessions = os.path.join(self.stagedir, "sessions")
        rows = []
        for name in sorted(os.listdir(sessions)) if os.path.isdir(sessions) else []:
            summary = os.path.join(sessions, name, "summary.csv")
            if os.path.exists(summary):  # a process that was killed has none
                with open(summary, newline="", encoding="utf-8") as file:
                    rows += csv.DictReader(file)
        return rows
