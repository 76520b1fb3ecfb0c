#include "harness/summary/session_findings.h"

#include <gmock/gmock.h>

#include "harness/summary/all_tables.h"
#include "tests/device/a_device.h"
#include "tests/sentences/said.h"
#include "tests/summary/made.h"

namespace launchgap {
namespace {

using namespace testing;

DeviceFacts gpu(const std::string& uuid, int index, const std::string& name = "NVIDIA A100") {
  DeviceFacts device = a_device(uuid, name);
  device.index = index;
  return device;
}

RunInfo run(const std::string& device, int replicate, const char* arm = "plain") {
  RunInfo info;
  info.device = device;
  info.replicate = replicate;
  info.arm = arm;
  info.process_config = ProcessConfig("launch");
  info.status = "ok";
  return info;
}

SummaryRow row(const std::string& device,
               const std::string& name,
               Status status,
               const std::string& reason,
               const char* arm = "plain") {
  SummaryRow made;
  made.key = {device, arm, ProcessConfig("launch"), CaseName::parse(name)};
  made.status = status;
  made.reason = reason;
  return made;
}

TraceInfo trace(const std::string& state, int replicate, const std::string& reason = "") {
  TraceInfo info;
  info.device = "GPU-1";
  info.process_config = ProcessConfig("launch");
  info.replicate = replicate;
  info.record.state = state;
  info.record.reason = reason;
  return info;
}

SessionData two_gpus() {
  SessionData session;
  session.state = "complete";
  session.devices = {gpu("GPU-1", 0), gpu("GPU-2", 1)};
  session.runs = {run("GPU-1", 0), run("GPU-2", 0)};
  return session;
}

std::vector<Finding> found_in(const SessionData& session,
                              const std::vector<SummaryRow>& rows = {}) {
  return said(session_findings(session, rows));
}

auto is(const char* code, Severity severity) {
  return AllOf(Field(&Finding::code, code),
               Field(&Finding::severity, severity),
               Field(&Finding::source, FindingSource::session));
}

TEST(SessionFindings, OfAWholeSessionThereAreNone) {
  EXPECT_THAT(session_findings(two_gpus(), {}), IsEmpty());
}

/// A run of the host that multiplied by OpenBLAS's code for `code`.
RunInfo product_run(const char* process_config,
                    const char* code,
                    const char* newer,
                    Json variables = {}) {
  RunInfo info = run("host-1", 0);
  info.process_config = ProcessConfig(process_config);
  info.fingerprint["environment"] = std::move(variables);
  info.libraries = {{.name = "OpenBLAS",
                     .soname = "libopenblas.so.0",
                     .path = "/usr/lib/libopenblas.so.0",
                     .version = "0.3.21",
                     .code = code,
                     .newer_code = newer}};
  return info;
}

TEST(SessionFindings, SayThatALibraryDoesNotKnowTheCpu) {
  SessionData session = two_gpus();
  session.runs.push_back(product_run("matmul", "Prescott", "SkylakeX"));
  session.runs.push_back(product_run("matmul+code=own", "Prescott", "SkylakeX"));
  const Finding found = only(found_in(session));
  EXPECT_THAT(found, is("old-library-code", Severity::distorts));
  EXPECT_EQ(
      found.sentence,
      "OpenBLAS 0.3.21 does not know this CPU and runs its code for Prescott (2004), although "
      "this CPU can execute that for SkylakeX (2017): its work may take several times as "
      "long as it needs to.");
  EXPECT_THAT(found.remedy, HasSubstr("Set OPENBLAS_CORETYPE=SkylakeX "));
  EXPECT_THAT(found.evidence, SizeIs(2));
}

TEST(SessionFindings, SayThatAVariableKeepsALibraryFromTheCpusVectors) {
  SessionData session = two_gpus();
  session.runs.push_back(
      product_run("matmul", "Prescott", "Haswell", {{"OPENBLAS_CORETYPE", "Prescott"}}));
  const Finding found = only(found_in(session));
  EXPECT_THAT(found, is("old-library-code", Severity::distorts));
  EXPECT_THAT(found.sentence,
              HasSubstr("OPENBLAS_CORETYPE=Prescott makes OpenBLAS 0.3.21 run its code for"));
  EXPECT_THAT(found.remedy, HasSubstr("Unset OPENBLAS_CORETYPE"));
}

TEST(SessionFindings, AreSilentAboutOldCodeThatWasAskedForOrIsNotOld) {
  SessionData session = two_gpus();
  session.runs.push_back(product_run("matmul+code=prescott", "Prescott", "SkylakeX"));
  session.runs.push_back(product_run("matmul", "SkylakeX", ""));
  EXPECT_THAT(found_in(session), IsEmpty());
}

TEST(SessionFindings, SayWhatWasNotMeasuredOnceForEachReason) {
  const SessionData session = two_gpus();
  const std::vector<SummaryRow> rows = {
      row("GPU-1", "launch/null/mode:idle", Status::unsupported, "cuDNN was not found"),
      row("GPU-2", "launch/null/mode:idle", Status::unsupported, "cuDNN was not found"),
      row("GPU-1", "launch/grid/blocks:1", Status::failed, "cuLaunchKernel answers 700"),
      row("GPU-1", "launch/queue", Status::ok, "")};
  const std::vector<Finding> findings = found_in(session, rows);
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_THAT(findings, Contains(is("case-failed", Severity::distorts)));
  const Finding& missing = findings[0].code == "case-unsupported" ? findings[0] : findings[1];
  EXPECT_THAT(missing, is("case-unsupported", Severity::note));
  EXPECT_EQ(missing.sentence, "cuDNN was not found.") << "a name is written as it is";
  EXPECT_EQ(missing.subject, "1 case on 2 devices");
  EXPECT_THAT(missing.evidence,
              ElementsAre(Evidence("launch/null/mode:idle: NVIDIA A100 (0)"),
                          Evidence("launch/null/mode:idle: NVIDIA A100 (1)")));
}

TEST(SessionFindings, ATraceThatSaysNothingIsSaidOnceAndNotAgainOfItsCases) {
  SessionData session = two_gpus();
  session.traces = {trace("degraded:subscriber_busy(nsys)", 0), trace("ok", 1)};
  session.runs = {run("GPU-1", 0, "traced")};
  session.runs[0].status = "failed";
  session.runs[0].reason = "a case failed";
  const std::vector<SummaryRow> rows = {row("GPU-1",
                                            "launch/null/mode:idle",
                                            Status::unsupported,
                                            "degraded:subscriber_busy(nsys): only one can",
                                            "traced")};
  const Finding found = only(found_in(session, rows));
  EXPECT_THAT(found, is("trace-degraded", Severity::distorts));
  EXPECT_THAT(found.sentence, HasSubstr("only one can"));
  EXPECT_EQ(found.remedy, "Run without the tool to get traced runs.");
  EXPECT_THAT(found.evidence, Contains(Evidence("NVIDIA A100 (0), launch: r0")));
}

TEST(SessionFindings, OnlyTheTraceThatIsBadIsSpokenOf) {
  SessionData session = two_gpus();
  session.traces = {trace("invalid:dropped", 0)};
  const std::vector<SummaryRow> rows = {
      row("GPU-1", "launch/null/mode:idle", Status::failed, "the result is wrong", "traced"),
      row("GPU-1", "launch/null/mode:idle", Status::failed, "invalid:dropped", "plain")};
  EXPECT_THAT(found_in(session, rows),
              AllOf(SizeIs(3), Contains(is("trace-invalid", Severity::distorts))));
}

TEST(SessionFindings, TracingThatWasNeverTriedSaysWhy) {
  SessionData session = two_gpus();
  session.tracing = {"unavailable:cupti_not_found", "libcupti.so.13 was not found"};
  const Finding found = only(found_in(session));
  EXPECT_THAT(found, is("trace-unavailable", Severity::distorts));
  EXPECT_THAT(found.subject, HasSubstr("no run was traced"));
  EXPECT_THAT(found.evidence, Contains(Evidence("libcupti.so.13 was not found")));
}

TEST(SessionFindings, NameWhatDisturbedTheRuns) {
  SessionData session = two_gpus();
  session.runs = {run("GPU-1", 0), run("GPU-1", 1), run("GPU-2", 0)};
  session.runs[0].measured_under_tool = "Nsight Systems";
  session.runs[1].other_processes = 2;
  session.runs[2].steady = false;
  session.runs[0].restless_cases = {"matmul/library/size:256", "matmul/library/size:512"};
  const std::vector<Finding> findings = found_in(session);
  EXPECT_THAT(findings,
              AllOf(SizeIs(4),
                    Contains(is("under-tool", Severity::distorts)),
                    Contains(is("other-processes", Severity::distorts)),
                    Contains(is("cooled-down", Severity::distorts)),
                    Contains(is("not-steady", Severity::distorts))));
  for (const Finding& finding : findings) {
    if (finding.code == "cooled-down") {
      EXPECT_EQ(finding.subject, "2 cases");
      EXPECT_THAT(finding.evidence.back().name, HasSubstr("matmul/library/size:512: r0"));
    }
    if (finding.code != "other-processes") continue;
    EXPECT_EQ(finding.evidence.front(), Evidence("most others at once", 2, "1"));
  }
}

TEST(SessionFindings, WhatCannotBeUsedPrevents) {
  SessionData session = two_gpus();
  session.devices[1].usable = false;
  session.devices[1].reason = "it is being measured by process 7";
  session.state = "running";
  std::vector<Finding> findings = found_in(session);
  sort_findings(findings);
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_THAT(findings[0], is("device-unusable", Severity::prevents));
  EXPECT_EQ(findings[0].subject, "NVIDIA A100 (1)");
  EXPECT_EQ(findings[0].sentence, "It is being measured by process 7.");
  EXPECT_THAT(findings[1], is("session-incomplete", Severity::distorts));
}

TEST(SessionFindings, SayWhatWasStoppedAndWhichTraceIsInDoubt) {
  SessionData session = two_gpus();
  session.state = "stopped";
  session.traces = {trace("ok", 0)};
  session.traces[0].record.doubtful = true;
  session.runs[0].status = "stopped";
  EXPECT_THAT(found_in(session),
              AllOf(SizeIs(2),
                    Contains(is("session-stopped", Severity::distorts)),
                    Contains(is("trace-doubtful", Severity::distorts))));
}

TEST(DeviceLabels, HaveAnIndexWhereTwoShareAName) {
  SessionData session = two_gpus();
  session.devices.push_back(gpu("GPU-3", 2, "NVIDIA T4"));
  const DeviceLabels labels(session);
  EXPECT_EQ(labels.of("GPU-2"), "NVIDIA A100 (1)");
  EXPECT_EQ(labels.of("GPU-3"), "NVIDIA T4");
  EXPECT_EQ(labels.of("GPU-9"), "GPU-9");
}

TEST(AllFindings, ComeFromEverySourceInOneOrder) {
  SessionData session = two_gpus();
  Finding doctors;
  doctors.code = "persistence-off";
  doctors.sentence = "Persistence mode is off.";
  session.doctor = {doctors};
  session.devices[1].usable = false;
  NightRows nights;
  nights.verdicts.emplace_back().verdict = "slower";
  const std::vector<SummaryRow> rows;
  const SlowSamples slow(session, rows);
  const std::vector<Finding> all = all_findings({session, rows, slow, &nights});
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(all[0].code, "device-unusable");
  EXPECT_EQ(all[1].code, "slower");
  EXPECT_EQ(all[2].code, "persistence-off");
}

TEST(SessionFindings, NotesAreWholeSentencesOfTheirGravity) {
  const struct {
    const char *severity, *text, *sentence;
    Severity found;
  } cases[] = {
      {"error", "a zone is lost", "A zone is lost.", Severity::distorts},
      {"warning", "zones are lost.", "Zones are lost.", Severity::distorts},
      {"info", "cuDNN was not found", "cuDNN was not found.", Severity::note},
      {"info", "", "No reason was recorded.", Severity::note},
      {"info", "`x` is odd", "`x` is odd.", Severity::note},
      {"info", "a{ is odd", "a{ is odd.", Severity::note},
  };
  for (const auto& [severity, text, sentence, gravity] : cases) {
    SessionData session = two_gpus();
    Note& note = session.notes.emplace_back();
    note.severity = severity;
    note.text = text;
    const Finding finding = only(session_findings(session, {}));
    EXPECT_THAT(finding, is("note", gravity));
    EXPECT_EQ(finding.sentence, sentence);
  }
}

TEST(SessionFindings, TracesThatAreOffOrWholeOrAreNoneAreNotSpokenOf) {
  SessionData session = two_gpus();
  for (const char* const state : {"", "ok", "off", "recorded"})
    session.traces.push_back(trace(state, 0));
  EXPECT_THAT(session_findings(session, {}), IsEmpty());
  session.traces.push_back(trace("invalid:dropped", 1));
  session.traces.push_back(trace("ok", 2));
  session.traces.push_back(trace("invalid:dropped", 3));
  EXPECT_EQ(only(session_findings(session, {})).subject, "2 traced runs");
}

TEST(SessionFindings, ATracesReasonIsSaidWithoutItsState) {
  SessionData session = two_gpus();
  session.traces = {trace("invalid:dropped", 0, "invalid:dropped: 5 records"),
                    trace("invalid:dropped", 1, "a reason of its own"),
                    trace("invalid:dropped", 2)};
  std::vector<std::string> lines;
  for (const Evidence& line : only(session_findings(session, {})).evidence)
    lines.push_back(text_of(line));
  EXPECT_THAT(lines,
              ElementsAre("invalid:dropped",
                          "5 records",
                          "a reason of its own",
                          "NVIDIA A100 (0), launch: r0 r1 r2"));
}

TEST(SessionFindings, OfTracingThatWasNotPossibleWithoutAGpuNothingIsSaid) {
  SessionData session = two_gpus();
  session.tracing = {"unavailable:cupti_not_found", ""};
  EXPECT_THAT(only(session_findings(session, {})).evidence, SizeIs(1)) << "it has no reason";
  session.tracing.reason = "it was not found";
  session.traces = {trace("unavailable:cupti_not_found", 0)};
  EXPECT_EQ(only(session_findings(session, {})).subject, "1 traced run");
  EXPECT_THAT(only(session_findings(session, {})).evidence, SizeIs(2)) << "the run says it";
  session.traces = {};
  session.devices = {a_device("host-1", "AMD EPYC", "host")};
  EXPECT_THAT(session_findings(session, {}), IsEmpty());
  session.devices.push_back(gpu("GPU-1", 0));
  session.tracing.state = "off";
  EXPECT_THAT(session_findings(session, {}), IsEmpty());
}

TEST(SessionFindings, RunsWithoutAResultAreSaidByStatusAndReason) {
  SessionData session = two_gpus();
  session.runs = {run("GPU-1", 0), run("GPU-1", 1), run("GPU-2", 0), run("GPU-2", 1)};
  session.runs[0].status = "";
  for (const std::size_t i : {1u, 2u, 3u}) {
    session.runs[i].status = i == 3 ? "stopped" : "failed";
    session.runs[i].reason = "a case failed";
  }
  std::vector<std::string> found;
  for (const Finding& one : session_findings(session, {}))
    found.push_back(one.code + " " + one.subject + " " + one.sentence);
  EXPECT_THAT(found,
              ElementsAre("run-failed 2 runs A case failed.", "run-stopped 1 run A case failed."));
  session.state = "stopped";
  EXPECT_THAT(
      session_findings(session, {}),
      ElementsAre(is("session-stopped", Severity::distorts), is("run-failed", Severity::distorts)));
}

TEST(SessionFindings, ATracedRunThatFailedForItsTraceAloneIsNotSaidAgain) {
  const auto codes = [](const auto& change) {
    SessionData session = two_gpus();
    session.traces = {trace("invalid:dropped", 0)};
    session.runs = {run("GPU-1", 0, "traced")};
    session.runs[0].status = "failed";
    session.runs[0].reason = "a case failed";
    change(session.runs[0]);
    std::vector<std::string> found;
    for (const Finding& one : session_findings(session, {})) found.push_back(one.code);
    return found;
  };
  EXPECT_THAT(codes([](RunInfo&) {}), ElementsAre("trace-invalid"));
  EXPECT_THAT(codes([](RunInfo& own) { own.arm = "plain"; }), SizeIs(2));
  EXPECT_THAT(codes([](RunInfo& own) { own.reason = "it crashed"; }), SizeIs(2));
  EXPECT_THAT(codes([](RunInfo& own) { own.replicate = 1; }), SizeIs(2));
  EXPECT_THAT(codes([](RunInfo& own) { own.device = "GPU-2"; }), SizeIs(2));
}

TEST(SessionFindings, OfOtherProcessesTheMostAtOnceAreSaid) {
  SessionData session = two_gpus();
  session.runs = {run("GPU-1", 0), run("GPU-1", 1), run("GPU-1", 2)};
  session.runs[0].other_processes = 0;
  EXPECT_THAT(session_findings(session, {}), IsEmpty());
  session.runs[1].other_processes = 3;
  session.runs[2].other_processes = 1;
  session.runs[0].steady = true;
  const Finding found = only(session_findings(session, {}));
  EXPECT_EQ(found.subject, "2 runs");
  EXPECT_EQ(text_of(found.evidence.at(0)), "most others at once: 3");
}

TEST(SessionFindings, OldCodeIsOfTheLibrariesThatHaveNewer) {
  SessionData session = two_gpus();
  session.runs = {product_run("matmul+code=prescott", "Prescott", "SkylakeX"),
                  product_run("matmul", "Prescott", "SkylakeX", 5),
                  product_run("matmul", "Prescott", "SkylakeX", {{"OPENBLAS_CORETYPE", 7}})};
  session.runs[1].libraries.insert(session.runs[1].libraries.begin(), LoadedLibrary());
  session.runs[2].replicate = 1;
  const Finding found = only(session_findings(session, {}));
  EXPECT_THAT(found.sentence, StartsWith("OpenBLAS 0.3.21 does not know this CPU"));
  EXPECT_THAT(found.evidence, ElementsAre(Evidence("plain, matmul: r0 r1")));
}

TEST(SessionFindings, CasesSayWhichProcessesAndDevicesTheyAreOf) {
  SummaryRow other = row("GPU-1", "launch/a", Status::invalid, "late");
  other.key.process_config = ProcessConfig("launch+wait=block");
  SummaryRow unsaid = row("GPU-1", "launch/b", Status::invalid, "late");
  unsaid.key.process_config = ProcessConfig();
  SummaryRow memory = row("GPU-1", "launch/c", Status::invalid, "late");
  memory.key.process_config = ProcessConfig("launc");
  const Finding found = only(session_findings(two_gpus(),
                                              {row("GPU-1", "launch/ok", Status::ok, "late"),
                                               row("GPU-1", "launch/a", Status::invalid, "late"),
                                               other,
                                               unsaid,
                                               memory}));
  EXPECT_THAT(found, is("case-invalid", Severity::distorts));
  EXPECT_EQ(found.subject, "4 cases on NVIDIA A100 (0)");
  EXPECT_THAT(found.evidence,
              ElementsAre(Evidence("launch/a [launch+wait=block]: NVIDIA A100 (0)"),
                          Evidence("launch/a: NVIDIA A100 (0)"),
                          Evidence("launch/b: NVIDIA A100 (0)"),
                          Evidence("launch/c [launc]: NVIDIA A100 (0)")));
}

TEST(SessionFindings, RatesThatCannotBeAreSaidOfEachDevice) {
  SessionData session = two_gpus();
  for (DeviceFacts& device : session.devices) device.name = "NVIDIA A100-SXM4-80GB";
  for (const auto& [device, arm, tflops] : {std::tuple("GPU-1", "plain", 5000.0),
                                            std::tuple("GPU-1", "traced", 5000.0),
                                            std::tuple("GPU-2", "plain", 200.0)}) {
    CaseData& data =
        session
            .cases[{device, arm, "matmul", CaseName::parse("matmul/library/size:4096/type:fp16")}];
    data.metric_order = {"tflops"};
    data.samples["tflops"][0] = {tflops};
  }
  const Finding found = only(session_findings(session, {}));
  EXPECT_THAT(found, is("impossible-rate", Severity::distorts));
  EXPECT_EQ(found.subject, "2 cases on NVIDIA A100-SXM4-80GB (0)");
  EXPECT_EQ(found.device, "GPU-1");
  ASSERT_THAT(found.evidence, SizeIs(2));
  EXPECT_THAT(text_of(found.evidence[0]), StartsWith("matmul/library/size:4096/type:fp16: "));
  EXPECT_THAT(text_of(found.evidence[1]), StartsWith("matmul/library/size:4096/type:fp16, traced"));
}

TEST(DeviceLabels, OfPublishedValuesHaveTheSoftwareThatIsKnown) {
  SessionData session;
  session.devices = {gpu("a", 0), gpu("b", 1), gpu("c", 2), gpu("d", 3)};
  session.runs = {
      run("d", 0), run("a", 0, "published"), run("b", 0, "published"), run("c", 0, "published")};
  session.runs[0].fingerprint =
      session.runs[1].fingerprint = {{"cuda", "7.5"}, {"driver_version", "352.99"}};
  session.runs[2].fingerprint = {{"cuda", ""}, {"driver_version", "1"}};
  session.runs[3].fingerprint = 5;
  const DeviceLabels labels(session);
  EXPECT_EQ(labels.of("a"), "NVIDIA A100, CUDA 7.5, driver 352.99");
  EXPECT_EQ(labels.of("b"), "NVIDIA A100, driver 1");
  EXPECT_EQ(labels.of("c"), "NVIDIA A100 (2)");
  EXPECT_EQ(labels.of("d"), "NVIDIA A100 (3)");
}

TEST(MergedFindings, WhatIsMissingIsNamedAsOneFinding) {
  SessionData session = two_gpus();
  EXPECT_THAT(merged_findings(session), IsEmpty());
  session.missing = {{"n4", "", "nothing of it is there: drained (bad fan)"}};
  std::vector<Finding> found = said(merged_findings(session));
  ASSERT_THAT(found, ElementsAre(is("parts-missing", Severity::distorts)));
  EXPECT_THAT(found[0].sentence, StartsWith("Something is missing of these sessions"));
  session.missing.push_back({"n2", "GPU-2", "it was killed before its end"});
  session.missing.push_back({"", "", "of job 7 there is nothing of rank 1 of 4"});
  found = said(merged_findings(session));
  EXPECT_THAT(found[0].sentence, StartsWith("3 parts are missing of these sessions"));
  EXPECT_THAT(found[0].evidence,
              ElementsAre(Evidence("n4: nothing of it is there: drained (bad fan)"),
                          Evidence("n2, GPU-2: it was killed before its end"),
                          Evidence("of job 7 there is nothing of rank 1 of 4")));
}

}  // namespace
}  // namespace launchgap
