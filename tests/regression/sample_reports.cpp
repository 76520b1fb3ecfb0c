#include "tests/regression/sample_reports.h"

#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

namespace launchgap::regression {
namespace {

constexpr const char* kFirstGpu = "GPU-11111111-2222-3333-4444-555555555501";
constexpr const char* kSecondGpu = "GPU-22222222-2222-3333-4444-555555555502";

Result result_of(const char* device, const char* case_name, const char* metric, Verdict verdict) {
  Result result;
  result.key = {{device, "plain", "launch", CaseName::parse(case_name)}, metric};
  result.node = "node17";
  result.device_name = "NVIDIA H100 80GB HBM3";
  result.verdict = verdict;
  result.runs = 10;
  return result;
}

/// With figures: `change` of 2 µs.
Result compared(const char* device,
                const char* case_name,
                const char* metric,
                Verdict verdict,
                double change) {
  Result result = result_of(device, case_name, metric, verdict);
  result.baseline = 2000;
  result.value = 2000 * (1 + change);
  result.change = change;
  result.interval = {change - 0.009, change + 0.009};
  result.compared_with = 60;
  result.minimum = 0.03;
  result.z = change / 0.01;
  result.p99 = 4000;
  result.baseline_p99 = 3900;
  return result;
}

Report report_of(std::vector<Result> results) {
  Report report;
  report.base = "60 sessions of history.sqlite";
  report.subject = "results/2026-11-22";
  report.session_id = "20261122T030000Z-4440b2";
  report.begin_utc = "2026-11-22T03:00:00Z";
  report.results = std::move(results);
  return report;
}

Report night() {
  std::vector<Result> results;
  results.push_back(
      compared(kFirstGpu, "launch/null/api:driver/mode:idle", "api_ns", Verdict::slower, 0.081));
  results.back().hits = 3;
  results.back().reason = "slower in 3 sessions in a row";
  results.push_back(compared(
      kSecondGpu, "launch/null/api:driver/mode:burst", "per_launch_ns", Verdict::slower, 0.25));
  results.back().reason = "confirmed by 8 pairs with the baseline build";
  results.push_back(compared(
      kFirstGpu, "launch/null/api:driver/mode:idle", "roundtrip_ns", Verdict::suspect, 0.042));
  results.push_back(compared(kSecondGpu,
                             "convolution/library/layer:conv4_3x3/n:8/type:fp32/cache:warm",
                             "device_ns",
                             Verdict::suspect,
                             0.035));
  results.back().key.where.process_config = "convolution";
  results.push_back(compared(
      kFirstGpu, "launch/null/api:driver/mode:burst", "per_launch_ns", Verdict::same, 0.004));
  results.back().steadiness = Steadiness::erratic;
  results.back().steadiness_reason = "within-run CV 2.1 times as large";
  results.push_back(compared(
      kFirstGpu, "launch/echo/api:driver/mode:idle", "roundtrip_ns", Verdict::faster, -0.12));
  results.push_back(
      compared(kFirstGpu, "launch/flag/api:driver/mode:idle", "api_ns", Verdict::same, -0.002));
  results.back().steadiness = Steadiness::steadier;
  for (const double change : {0.081, 0.012}) {
    results.push_back(compared(
        kSecondGpu,
        change > 0.05 ? "launch/null/api:driver/mode:idle" : "launch/echo/api:driver/mode:idle",
        "api_ns",
        Verdict::no_baseline,
        change));
    results.back().compared_with = 1;
    results.back().changed = {{"driver", "570.12", "575.08"}};
  }
  results.push_back(result_of(
      kSecondGpu, "launch/null/api:driver/mode:idle", "roundtrip_ns", Verdict::no_baseline));
  results.back().reason = "12 of 20 sessions";
  results.push_back(
      result_of(kFirstGpu, "launch/null/api:driver/mode:idle", "launch_ns", Verdict::invalid));
  results.back().key.where.arm = "traced";
  results.back().reason = "shared: 1 other process on the device (run 2)";
  results.push_back(
      compared(kFirstGpu, "launch/after_idle/idle_ms:1", "roundtrip_ns", Verdict::unstable, 0.06));
  results.back().reason = "two levels, 6 % apart";
  results.push_back(compared(
      kFirstGpu, "allocation/latency/allocator:malloc/bytes:256", "device_ns", Verdict::watch, 0));
  results.back().key.where.process_config = "allocation";
  results.back().reason = "its median is 3 ticks of the clock";
  results.push_back(compared(
      kSecondGpu, "launch/flag/api:driver/mode:idle", "flag_ns", Verdict::cannot_tell, 0.4));
  results.back().interval = stats::Interval{-0.265, 4.1};
  results.back().reason = "some 40 runs of each session would tell";
  results.push_back(
      compared(kSecondGpu, "launch/echo/api:driver/mode:idle", "echo_ns", Verdict::same, 0.001));
  results.back().tail = 12.5;
  results.back().p99 = 48'750;
  Report report = report_of(std::move(results));
  report.notes = {"Medians are judged, and a longer tail is reported"};
  return report;
}

Report quiet() {
  std::vector<Result> results;
  for (const char* metric : {"api_ns", "roundtrip_ns"}) {
    results.push_back(
        compared("host-1", "launch/null/api:queue/mode:idle", metric, Verdict::same, 0.002));
    results.back().device_name = "AMD EPYC";
    results.back().power = MeasuredPower{0.0007, 0.05, 0.001};
  }
  return report_of(std::move(results));
}

Report strict() {
  Report report = quiet();
  report.strictness.require_baseline = true;
  report.results.push_back(
      result_of("host-1", "launch/echo/api:queue/mode:idle", "api_ns", Verdict::no_baseline));
  report.results.back().reason = "3 of 20 sessions";
  return report;
}

Report erratic() {
  Report report = quiet();
  report.strictness.gate_spread = true;
  report.results.front().steadiness = Steadiness::erratic;
  report.results.front().steadiness_reason = "p99/p50 1.9 times as large";
  return report;
}

Report invalid() {
  Report report = report_of({});
  report.invalid = "it is simulated: measured on fake CUDA libraries";
  return report;
}

Report two() {
  Report report = report_of(
      {compared(kFirstGpu, "launch/null/api:driver/mode:idle", "api_ns", Verdict::suspect, 0.081)});
  report.kind = Kind::sessions;
  report.base = "results/monday";
  report.subject = "results/tuesday";
  report.results.front().compared_with = 10;
  report.notes = {"Two sessions cannot tell the change from the night: nothing is confirmed"};
  return report;
}

Report hostile() {
  // NOLINTBEGIN(misc-misleading-bidirectional): that is what it is to be
  const std::string evil =
      "a|b<script>alert('1')</script>]]>&amp;\"\n::error::x%0A,:\r\x1b[31m\x01\xff\xEF\xBF\xBE"
      "@owner ::warning::x ::error::y ##[error]z [x](http://e.example) **b** `c` \xE2\x80\xAE _d_";
  // NOLINTEND(misc-misleading-bidirectional)
  Report report = night();
  for (Result& result : report.results) {
    result.device_name = evil;
    result.node = evil;
    result.key.where.device += evil;
    result.key.where.process_config = evil;
    result.key.where.arm = evil;
    result.key.where.name.params.front().second += evil;
    result.key.metric += evil;
    result.reason = evil;
    result.steadiness_reason = evil;
    result.changed = {{evil, evil, evil}};
  }
  report.results[0].value = std::nan("");
  report.results[1].change = std::numeric_limits<double>::infinity();
  report.results[2].interval = {-std::numeric_limits<double>::infinity(), 1};
  report.base = report.subject = report.session_id = report.begin_utc = evil;
  report.notes = {evil};
  return report;
}

Report large() {
  const std::string name(3000, '<');
  Report report = night();
  const std::vector<Result> some = report.results;
  while (report.results.size() < 10'000) {
    for (Result result : some) {
      result.node = name + std::to_string(report.results.size());
      result.reason = result.node;
      result.changed.push_back({result.node, name, name});
      report.results.push_back(std::move(result));
    }
  }
  report.notes.assign(1000, name);
  return report;
}

}  // namespace

Report sample_report(std::string_view name) {
  if (name == "night") return night();
  if (name == "quiet") return quiet();
  if (name == "strict") return strict();
  if (name == "erratic") return erratic();
  if (name == "invalid") return invalid();
  if (name == "empty") return {};
  if (name == "two") return two();
  if (name == "hostile") return hostile();
  if (name == "large") return large();
  throw Error(fmt::format("there is no sample report '{}'", name));
}

}  // namespace launchgap::regression
