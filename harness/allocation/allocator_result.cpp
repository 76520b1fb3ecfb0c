#include "harness/allocation/allocator_result.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/core/text.h"

namespace launchgap::allocation {
namespace {

Json or_null(const auto& value) {
  return value ? Json(*value) : Json();
}

Json ratio(const std::optional<std::uint64_t>& bytes, std::uint64_t of) {
  if (!bytes || of == 0) return {};
  return static_cast<double>(*bytes) / static_cast<double>(of);
}

Json fragmentation_json(const Fragmentation& one) {
  Json json = {{"live_bytes", one.live_bytes},
               {"granted_bytes", one.holding.granted},
               {"reserved_bytes", one.holding.reserved},
               {"free_bytes", one.holding.free},
               {"largest_free_bytes", one.holding.largest_free},
               {"internal_waste", one.internal_waste},
               {"largest_block_index", one.largest_block_index},
               {"reserve_slack", one.reserve_slack}};
  Json unusable = Json::array();
  for (std::size_t i = 0; i < kUnusableFor.size(); ++i)
    unusable.push_back({{"request_bytes", kUnusableFor[i]}, {"index", one.unusable[i]}});
  json["unusable"] = std::move(unusable);
  return json;
}

Json moment_json(const Moment& moment) {
  Json json = fragmentation_json(moment.fragmentation);
  json["event"] = moment.event;
  json["t_ns"] = moment.t_ns;
  if (!moment.occupancy.empty()) json["occupancy"] = moment.occupancy;
  return json;
}

Json times_json(const TimeCounts& times) {
  return {{"n", times.n()},
          {"p50_ns", or_null(times.quantile_ns(0.5))},
          {"p90_ns", or_null(times.quantile_ns(0.9))},
          {"p99_ns", or_null(times.quantile_ns(0.99))},
          {"max_ns", times.n() > 0 ? Json(times.longest_ns()) : Json()}};
}

Json result_json(const AllocatorResult& result, std::uint64_t peak_live_bytes) {
  const Replay& replay = result.replay;
  const SmallestLimit smallest = result.smallest.value_or(SmallestLimit{});
  const std::uint64_t operations = replay.allocations + replay.releases;
  Json json = {
      {"name", result.name},
      {"completed", replay.completed},
      {"c_min_bytes", or_null(smallest.bytes)},
      {"peak_live_bytes", peak_live_bytes},
      {"c_min_over_peak", ratio(smallest.bytes, peak_live_bytes)},
      {"fails_again_at", or_null(smallest.fails_again_at)},
      {"limit_bytes", result.limit_bytes},
      {"reserved_peak_bytes", replay.peak_reserved_bytes},
      {"operations", operations},
      {"allocations", replay.allocations},
      {"releases", replay.releases},
      {"calls_s", replay.calls_s},
      {"operations_per_s",
       replay.calls_s > 0 ? Json(static_cast<double>(operations) / replay.calls_s) : Json()},
      {"allocate", times_json(replay.allocate_times)},
      {"release", times_json(replay.release_times)},
      {"failure", Json()},
      {"at_peak", replay.at_peak ? moment_json(*replay.at_peak) : Json()}};
  if (replay.failure) {
    const FailedAllocation& failure = *replay.failure;
    json["failure"] = {{"event", failure.event},
                       {"bytes", failure.bytes},
                       {"cured_by", name_of(failure.cured_by)},
                       {"then", fragmentation_json(failure.fragmentation)}};
  }
  if (!result.epochs.empty()) {
    Json epochs = Json::array();
    for (const Epoch& epoch : result.epochs)
      epochs.push_back({{"live_bytes", epoch.live},
                        {"reserved_bytes", epoch.reserved},
                        {"used_bytes", epoch.used}});
    json["creep"] = {{"kind", name_of(result.creep.kind)},
                     {"bytes_per_epoch", result.creep.bytes_per_epoch},
                     {"p", result.creep.p},
                     {"epochs", std::move(epochs)}};
  }
  json["moments"] = Json::array();
  for (const Moment& moment : replay.moments) json["moments"].push_back(moment_json(moment));
  return json;
}

const AllocatorResult* result_named(const Played& played, std::string_view name) {
  const auto found = std::ranges::find(played.allocators, name, &AllocatorResult::name);
  return found == played.allocators.end() || !found->smallest || !found->smallest->bytes ? nullptr
                                                                                         : &*found;
}

}  // namespace

Json played_as_json(const Played& played) {
  const TraceFacts& facts = played.facts;
  Json json = {{"trace",
                {{"name", played.trace},
                 {"source", played.head.source},
                 {"sizes", played.head.sizes == Sizes::granted ? "granted" : "requested"},
                 {"truncated", played.head.truncated},
                 {"device", facts.device},
                 {"events", facts.events},
                 {"allocations", facts.allocations},
                 {"releases", facts.releases},
                 {"failed", facts.failed},
                 {"peak_live_bytes", facts.peak_live_bytes},
                 {"peak_event", facts.peak_event},
                 {"live_at_end", facts.live_at_end},
                 {"live_bytes_at_end", facts.live_bytes_at_end},
                 {"unseen_frees", played.counts.unseen_frees},
                 {"missing_frees", played.counts.missing_frees},
                 {"clock_went_back", played.counts.clock_went_back}}},
               {"over", played.over},
               {"paced", played.paced},
               {"injected", played.injected.empty() ? Json() : Json(played.injected)},
               {"allocators", Json::array()}};
  for (const AllocatorResult& result : played.allocators)
    json["allocators"].push_back(result_json(result, facts.peak_live_bytes));
  return json;
}

std::string growth_answer(const Played& played) {
  const AllocatorResult* const one = result_named(played, "bfc");
  const AllocatorResult* const growing = result_named(played, "bfc_growth");
  if (!one || !growing) return {};
  const auto whole = static_cast<double>(*one->smallest->bytes);
  const auto grown = static_cast<double>(*growing->smallest->bytes);
  const double change = grown / whole - 1;
  if (std::abs(change) < 0.001)
    return "Memory growth makes no difference here: bfc_growth needs as much as bfc.";
  return fmt::format("Memory growth {} here: bfc_growth needs {} {} than bfc.",
                     change < 0 ? "helps" : "does not help",
                     percent_text(std::abs(change)),
                     change < 0 ? "less" : "more");
}

}  // namespace launchgap::allocation
