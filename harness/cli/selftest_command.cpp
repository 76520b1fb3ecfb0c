// launchgap selftest
#include <algorithm>
#include <charconv>
#include <functional>
#include <memory>
#include <span>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/what_to_measure.h"
#include "harness/core/build_info.h"
#include "harness/core/metric.h"
#include "harness/core/output_file.h"
#include "harness/core/printable.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/regression/selftest.h"

namespace launchgap::cli {
namespace {

using regression::Selftest;
using regression::SelftestRequest;
using regression::SelftestRow;

struct SelftestCommandOptions {
  std::size_t processes = 40, pairs = rules::kLeastPairs, noop = 0, tries = 5;
  std::string slowdown, json, history;
  WhatToMeasure what;
};

/// "5%" or "5" as 0.05. Throws UsageError.
double parse_percent(const std::string& text) {
  double percent = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, percent);
  const bool whole = rest == end || (rest + 1 == end && *rest == '%');
  if (error != std::errc() || !whole || !(percent >= 0.1 && percent <= 1000))
    throw UsageError("--slowdown '{}': write a percentage from 0.1 to 1000, as 5%",
                     printable(text));
  return percent / 100;
}

std::string share(std::optional<double> value) {
  return value ? fmt::format("{:.2f} %", 100 * *value) : "–";
}

/// "2/400 [0.06, 1.79] %".
std::string alarms_text(const SelftestRow& row) {
  if (!row.alarm_interval) return "–";
  return fmt::format("{}/{} [{:.2f}, {:.2f}] %",
                     row.alarms,
                     row.comparisons,
                     100 * row.alarm_interval->low,
                     100 * row.alarm_interval->high);
}

std::string slowdowns_text(const SelftestRow& row) {
  const auto& slowdowns = row.slowdowns;
  return slowdowns && slowdowns->tries > 0
             ? fmt::format("{}/{}", slowdowns->found, slowdowns->tries)
             : "–";
}

std::string remarks_of(const SelftestRow& row) {
  const std::string name = fmt::format("{} {}", row.key.where.name.text(), row.key.metric);
  std::string text;
  if (!row.watched.empty()) text += fmt::format("{} is only watched: {}\n", name, row.watched);
  if (row.too_noisy()) {
    text += fmt::format(
        "{}: the machine is too noisy, {} between processes, and this proves nothing (above {})\n",
        name,
        percent_text(*row.noise),
        percent_text(regression::kMostNoise));
  }
  if (!row.slowdowns) return text;
  const regression::Slowdowns& slowdowns = *row.slowdowns;
  if (slowdowns.tries > 0) {
    text += fmt::format(
        "{}: {} were asked for, {} ns inserted into each call, and it became {:+.1f} "
        "% slower\n",
        name,
        percent_text(slowdowns.asked),
        slowdowns.delay_ns ? fmt::format("{:.1f}", *slowdowns.delay_ns) : "?",
        100 * slowdowns.change.value_or(0));
  }
  if (!slowdowns.problem.empty()) text += fmt::format("{}: {}\n", name, slowdowns.problem);
  return text;
}

std::string text_of(const Selftest& result) {
  std::vector<std::vector<std::string>> rows = {{"case",
                                                 "metric",
                                                 "median",
                                                 "noise",
                                                 "lag-1",
                                                 "false alarms",
                                                 "erratic",
                                                 "detectable",
                                                 "A/A slower [95 %]",
                                                 "found"}};
  std::string remarks;
  for (const SelftestRow& row : result.rows) {
    rows.push_back({row.key.where.name.text(),
                    row.key.metric,
                    quantity(row.value, unit_of(row.key.metric)),
                    share(row.noise),
                    row.lag1 ? fmt::format("{:+.2f}", *row.lag1) : "–",
                    share(row.false_alarm_rate),
                    share(row.erratic_rate),
                    share(row.detectable),
                    alarms_text(row),
                    slowdowns_text(row)});
    remarks += remarks_of(row);
  }
  std::string text = table(rows);
  text += fmt::format(
      "compare of {} pairs states {} of false alarms; detectable is the slowdown that it finds in "
      "{} of all comparisons.\n",
      result.pairs,
      percent_text(rules::kStatedAlarmRate),
      percent_text(regression::kPower));
  for (const std::string& note : result.notes) remarks += note + "\n";
  return text + remarks;
}

/// The metrics about which the rule is wrong most often.
std::string text_of(const regression::NightRates& nights) {
  std::vector<regression::NightRate> rates = nights.rates;
  constexpr std::size_t kShown = 20;
  std::string without;
  for (const auto& [why, count] : nights.without)
    without += fmt::format(
        "{} {} no rate: {}\n", counted(count, "metric"), count == 1 ? "has" : "have", why);
  if (rates.empty()) return "No metric has a rate of false alarms.\n" + without;
  const auto rate_of = [](const regression::NightRate& one) {
    return one.rate.power.false_alarm_rate;
  };
  double expected = 0;
  for (const regression::NightRate& one : rates) expected += rate_of(one);
  std::ranges::stable_sort(rates, std::greater(), rate_of);
  std::vector<std::vector<std::string>> rows = {
      {"case", "metric", "nights", "noise", "false alarms", "erratic", "detectable"}};
  for (const regression::NightRate& one : std::span(rates).first(std::min(kShown, rates.size()))) {
    const regression::SeriesKey& key = one.rate.key;
    rows.push_back({key.where.name.text(),
                    key.metric,
                    std::to_string(one.nights),
                    share(one.rate.noise),
                    share(rate_of(one)),
                    share(one.rate.power.erratic_rate),
                    share(one.rate.power.detectable)});
  }
  std::string text = "\nNights, of which check judges each by those before:\n" + table(rows);
  if (rates.size() > kShown) text += fmt::format("and {} more\n", rates.size() - kShown);
  return text +
         fmt::format("{:.2g} false alarms are to be expected each night, of {}.\n",
                     expected,
                     counted(rates.size(), "metric")) +
         without;
}

/// Measures processes, as far as that was asked for; false if a signal stopped it.
bool measure(const SelftestCommandOptions& options, Selftest& result) {
  SelftestRequest request;
  request.run = options.what.run_options();
  request.processes = options.processes;
  request.pairs = options.pairs;
  request.noop = options.noop;
  request.tries = options.tries;
  if (!options.slowdown.empty()) request.slowdown = parse_percent(options.slowdown);
  try {
    regression::selftest(request, result);
    return true;
  } catch (const Stopped&) {
    return false;
  }
}

ExitCode test(const SelftestCommandOptions& options) {
  if (options.processes == 0 && options.history.empty())
    throw UsageError("--processes 0 leaves nothing to test, unless --history names nights");
  if (options.processes == 0 && (options.noop > 0 || !options.slowdown.empty()))
    throw UsageError("--noop and --slowdown need processes");
  if (!options.json.empty()) check_output_place(options.json);
  const SignalWatch watch;
  std::unique_ptr<regression::History> history;
  if (!options.history.empty()) {
    using Use = regression::History::Use;
    { const regression::History there(options.history, Use::read); }  // what is not is not made
    history = std::make_unique<regression::History>(options.history, Use::write);
  }
  Selftest result;
  const bool stopped = options.processes > 0 && !measure(options, result);
  const auto write = [&](const regression::NightRates* nights) {
    if (!options.json.empty())
      write_file(options.json, text_of_json(regression::to_json(result, nights), 1) + "\n");
  };
  write(nullptr);
  if (!result.rows.empty()) answer_text(text_of(result));
  if (stopped) {
    say_line("Stopped early; what was found until then is above.");
    return ExitCode::stopped_early;
  }
  if (!history) return ExitCode::done;
  const regression::NightRates nights = regression::rates_of_nights(*history);
  write(&nights);
  std::vector<regression::Rate> rates = regression::rates_of_pairs(result);
  for (const regression::NightRate& night : nights.rates) rates.push_back(night.rate);
  history->add_rates(rates);
  answer_text(text_of(nights));
  return ExitCode::done;
}

}  // namespace

void add_selftest(CLI::App& app, Action& action) {
  CLI::App* const command = app.add_subcommand(
      "selftest", "How much processes vary here, how often compare is wrong, and what it finds");
  auto options = std::make_shared<SelftestCommandOptions>();
  options->what.filter = "^launch/null/";
  command
      ->add_option(
          "--processes",
          options->processes,
          "Fresh processes one after the other, whose medians show the noise; 0: none, with "
          "--history")
      ->check(CLI::Range(10, 10000) | CLI::IsMember({0}))
      ->capture_default_str();
  command
      ->add_option(
          "--pairs", options->pairs, "Pairs of each comparison, real or resampled, as of `compare`")
      ->check(CLI::Range(rules::kLeastPairs, std::size_t{1000}))
      ->capture_default_str();
  command
      ->add_option("--noop",
                   options->noop,
                   "As many real comparisons of this launchgap with itself: what they find slower "
                   "is a false alarm")
      ->check(CLI::Range(0, 100000));
  command->add_option("--slowdown",
                      options->slowdown,
                      "Real comparisons, with B's calls slowed by this percentage");
  command->add_option("--tries", options->tries, "Comparisons with the slowdown, for each metric")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->add_option("--history",
                      options->history,
                      "Find out from the nights of this history how often check is wrong, too, and "
                      "keep all rates in it: check and the page then show them");
  command->add_option("--json", options->json, "File for what was found, as JSON");
  options->what.add_options(*command);
  command->footer(
      "Example: launchgap selftest --devices host --noop 20 --slowdown 5%\n"
      "Exit codes: 0 whatever it finds, 3 it could not measure, 5 stopped early");
  command->callback([options, &action] { action = [options] { return test(*options); }; });
}

}  // namespace launchgap::cli
