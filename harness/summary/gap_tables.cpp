// The tables of the generation gap: of several sessions, or of one with several generations of
// GPUs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/finding.h"
#include "harness/summary/gap_rows.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

template <class Row>
auto gap_rows_of(std::vector<Row> GapRows::*rows) {
  return [rows](const TableInputs& inputs) {
    return inputs.gap ? inputs.gap->*rows : std::vector<Row>();
  };
}

constexpr std::string_view kOlder = "The GPU that was released earlier.";
constexpr std::string_view kNewer = "The other one.";
constexpr std::string_view kWork =
    "launch, product, convolution, copy, allocation or other; empty: all of them.";
constexpr std::string_view kClass =
    "Of products: large (no side below 1024), skinny (a side of at most an eighth of another), "
    "batched, small; of convolutions: convolution; else empty.";

}  // namespace

Table gap_devices_table() {
  using Row = GapDeviceRow;
  return make_table<Row>(
      "gap_devices.csv",
      "device that is laid beside others, in order",
      TableUse::comparison,
      gap_rows_of(&GapRows::devices),
      {{"session", "The id of its session.", &Row::session},
       {"device_id", &Row::device},
       {"reference", "Whether the others are set in relation to it.", &Row::reference}});
}

Table gap_ratios_table() {
  using Row = GapRatioRow;
  return make_table<Row>(
      "gap_ratios.csv",
      "device but the reference, case and metric that the reference has too",
      TableUse::comparison,
      [](const TableInputs& inputs, const auto& put) {
        if (inputs.gap && inputs.gap->each_ratio) inputs.gap->each_ratio(put);
      },
      {{"session", "The id of its session.", &Row::session},
       {"device_id", [](const Row& row) { return row.key->device; }},
       {"arm", [](const Row& row) { return row.key->arm; }},
       {"process_config", [](const Row& row) { return row.key->process_config.text(); }},
       {"case", [](const Row& row) { return row.key->name.text(); }},
       {"metric", &Row::metric},
       {"times",
        "How many times as fast as the reference; empty where no ratio is formed.",
        &Row::times,
        kTimes},
       {"times_lower",
        "Lower end of its 95 % interval for all cases of the device at once; empty where one of "
        "both "
        "has a single run.",
        &Row::times_lower,
        kTimes},
       {"times_upper", "Upper end.", &Row::times_upper, kTimes},
       {"verdict", "As in `gap.csv`.", &Row::verdict},
       {"words", "What the page says of it.", &Row::words}});
}

Table gap_recorded_table() {
  using Row = GapRecordedRow;
  return make_table<Row>(
      "gap_recorded.csv",
      "recorded GPU, measured GPU and metric of a launch on an idle stream",
      TableUse::comparison,
      gap_rows_of(&GapRows::recorded),
      {{"session", "The id of the recorded GPU's session.", &Row::session},
       {"device_id", &Row::device},
       {"metric", &Row::metric},
       {"measured_session", "The id of the measured GPU's session.", &Row::measured_session},
       {"measured_device", "The measured GPU.", [](const Row& row) { return row.key->device; }},
       {"same_name", "Whether both GPUs have one name.", &Row::same_name},
       {"arm", [](const Row& row) { return row.key->arm; }},
       {"case", "Its empty launch.", [](const Row& row) { return row.key->name.text(); }},
       {"measured_metric", "The metric of that.", &Row::measured_metric},
       {"times", "The recorded median as a multiple of the measured one.", &Row::times, kTimes}});
}

Table gap_answers_table() {
  using Row = GapAnswerRow;
  return make_table<Row>(
      "gap_answers.csv",
      "sentence of the comparison",
      TableUse::comparison,
      gap_rows_of(&GapRows::answers),
      {{"part",
        "gain: what the newest GPU gained against the oldest. unknown: what cannot be said. worst: "
        "where it gained least. disappoints: how much got slower, or gained less than half of what "
        "the ceilings promise.",
        &Row::part},
       {"tone", "warning where the newer GPU is slower, else know.", &Row::tone},
       {"sentence", "What is said.", &Row::sentence},
       {"evidence",
        "The numbers behind it, with interval and case, separated by \"; \".",
        [](const Row& row) { return fmt::format("{}", fmt::join(row.evidence, "; ")); }}});
}

Table gap_values_table() {
  using Row = GapValueRow;
  return make_table<Row>(
      "gap_values.csv",
      "device and quantity",
      TableUse::comparison,
      gap_rows_of(&GapRows::values),
      {{"device", "Its name, with what tells it from others of the name.", &Row::device},
       {"origin", "Of its values: measured, simulated, or published by others.", &Row::origin},
       {"place", "Of the quantity, from the top.", &Row::place},
       {"quantity", "What a person chooses by.", &Row::quantity},
       {"unit", &Row::unit},
       {"value", "The best case's median; of a launch, the median.", &Row::value, kUnitOfMetric},
       {"case", "Of the value; empty where it is of the device itself.", &Row::case_name},
       {"worst", "The worst of the same quantity.", &Row::worst, kUnitOfMetric},
       {"worst_of", "The case of that, or what it is.", &Row::worst_of},
       {"words", "Why there is no value: not available, not measured.", &Row::words}});
}

Table gap_classes_table() {
  using Row = GapClassRow;
  const auto best = &Row::best, worst = &Row::worst;
  return make_table<Row>(
      "gap_classes.csv",
      "pair of GPUs, kind of work, type and class of shape; and one of all cases of a pair",
      TableUse::comparison,
      gap_rows_of(&GapRows::classes),
      {{"older", kOlder, &Row::older},
       {"newer", kNewer, &Row::newer},
       {"work", kWork, &Row::work},
       {"type", "Of the elements.", &Row::type},
       {"class", kClass, &Row::shape_class},
       {"cases", "That both ran, by each metric that judges them.", &Row::cases},
       {"slower", "Of them: slower on the newer GPU, beyond the noise and 2 %.", &Row::slower},
       {"with_ceiling", "Of them: of which both ceilings are known.", &Row::with_ceiling},
       {"below_promise",
        "Of those: gained less than half of what the ceilings promise, (times - 1) below half of "
        "(ratio of ceilings - 1).",
        &Row::below_promise},
       {"best_case",
        "In which the newer GPU is fastest; of cases of several metrics, in which it gains most.",
        if_any(best, &GapCaseRow::case_name)},
       {"best_metric", "Of it.", if_any(best, &GapCaseRow::metric)},
       {"best_times",
        "How many times as fast the newer one is there.",
        if_any(best, &GapCaseRow::times),
        kTimes},
       {"best_lower",
        "Lower end of its 95 % interval.",
        if_any(best, &GapCaseRow::times_lower),
        kTimes},
       {"best_upper", "Upper end.", if_any(best, &GapCaseRow::times_upper), kTimes},
       {"best_per_ceiling",
        "That divided by the ratio of the ceilings: 1 keeps what they promise.",
        if_any(best, &GapCaseRow::per_ceiling),
        kTimes},
       {"best_per_multiprocessor",
        "Divided by the ratio of the multiprocessors.",
        if_any(best, &GapCaseRow::per_multiprocessor),
        kTimes},
       {"best_per_bandwidth",
        "Divided by the ratio of the memories' bandwidths.",
        if_any(best, &GapCaseRow::per_bandwidth),
        kTimes},
       {"best_per_power",
        "Divided by the ratio of powers: work per joule.",
        if_any(best, &GapCaseRow::per_power),
        kTimes},
       {"worst_case", "In which the newer one gains least.", if_any(worst, &GapCaseRow::case_name)},
       {"worst_metric", "Of it.", if_any(worst, &GapCaseRow::metric)},
       {"worst_times",
        "How many times as fast the newer one is there.",
        if_any(worst, &GapCaseRow::times),
        kTimes},
       {"worst_lower",
        "Lower end of its 95 % interval.",
        if_any(worst, &GapCaseRow::times_lower),
        kTimes},
       {"worst_upper", "Upper end.", if_any(worst, &GapCaseRow::times_upper), kTimes},
       {"causes", "What differs beside the GPU; of the row of all cases.", &Row::causes}});
}

Table gap_cases_table() {
  using Row = GapCaseRow;
  return make_table<Row>(
      "gap.csv",
      "pair of GPUs, case and metric",
      TableUse::comparison_cases,
      [](const TableInputs& inputs, const auto& put) {
        if (inputs.gap && inputs.gap->each_case) inputs.gap->each_case(put);
      },
      {{"older", kOlder, &Row::older},
       {"newer", kNewer, &Row::newer},
       {"case", &Row::case_name},
       {"metric", &Row::metric},
       {"unit", &Row::unit},
       {"work", kWork, &Row::work},
       {"type", "Of the elements.", &Row::type},
       {"class", kClass, &Row::shape_class},
       {"older_value", "Median of the older GPU's samples.", &Row::older_value, kUnitOfMetric},
       {"newer_value", "Of the newer one's.", &Row::newer_value, kUnitOfMetric},
       {"times", "How many times as fast the newer one is.", &Row::times, kTimes},
       {"times_lower",
        "Lower end of its 95 % interval; empty where one has a single run.",
        &Row::times_lower,
        kTimes},
       {"times_upper", "Upper end.", &Row::times_upper, kTimes},
       {"per_ceiling",
        "`times` divided by the ratio of the ceilings of the type, or of the memories' bandwidths.",
        &Row::per_ceiling,
        kTimes},
       {"per_multiprocessor",
        "Divided by the ratio of multiprocessors.",
        &Row::per_multiprocessor,
        kTimes},
       {"per_bandwidth", "Divided by the ratio of bandwidths.", &Row::per_bandwidth, kTimes},
       {"per_power", "Divided by the ratio of powers: work per joule.", &Row::per_power, kTimes},
       {"verdict",
        "faster, slower: beyond 2 %, and with 95 % certainty for all cases of the pair at once; "
        "same: "
        "within 2 %; within the noise: further, and not certain.",
        &Row::verdict}});
}

Table gap_limits_table() {
  using Row = GapLimitRow;
  return make_table<Row>("gap_limits.csv",
                         "GPU and thing that it cannot run, or kind of software",
                         TableUse::comparison,
                         gap_rows_of(&GapRows::limits),
                         {{"device", "Its name.", &Row::device},
                          {"what", "A type, or a kind of software.", &Row::what},
                          {"limit", "Why not, or the last that serves it.", &Row::limit},
                          {"source", "Of that.", &Row::source}});
}

Table gap_tuned_table() {
  using Row = GapTunedRow;
  return make_table<Row>(
      "gap_tuned.csv",
      "tuned kernel, GPU that it was tuned for, and another that it was tuned on too",
      TableUse::comparison,
      gap_rows_of(&GapRows::tuned),
      {{"kernel", "Its name.", &Row::kernel},
       {"problem", "Its size.", &Row::problem},
       {"parameters", "What was tuned, separated by commas.", &Row::parameters},
       {"tuned_for", "The GPU whose best configuration it is.", &Row::tuned_for},
       {"run_on", "The GPU that ran it.", &Row::run_on},
       {"configuration", "The values of the parameters, in their order.", &Row::configuration},
       {"own_configuration", "The best one of `run_on`.", &Row::own_configuration},
       {"ns", "The time of `configuration` on `run_on`.", &Row::ns, "ns"},
       {"own_ns", "The time of `own_configuration` there.", &Row::own_ns},
       {"times", "The first divided by the second: what it costs.", &Row::times, kTimes},
       {"times_lower",
        "Lower end of its 95 % interval; empty where single runs were not recorded.",
        &Row::times_lower,
        kTimes},
       {"times_upper", "Upper end.", &Row::times_upper, kTimes},
       {"verdict",
        "runs there, the best there too, cannot run there (and what the tuner said), not tried "
        "there.",
        &Row::verdict}});
}

}  // namespace launchgap
