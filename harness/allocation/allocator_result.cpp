#include "harness/allocation/allocator_result.h"

namespace launchgap::allocation {
namespace {

CallTimes times_of(const TimeCounts& times) {
  CallTimes record{times.n(),
                   times.quantile_ns(0.5),
                   times.quantile_ns(0.9),
                   times.quantile_ns(0.99),
                   std::nullopt};
  if (times.n() > 0) record.max_ns = static_cast<double>(times.longest_ns());
  return record;
}

AllocatorRecord record_of(const AllocatorResult& result, std::uint64_t peak_live_bytes) {
  const Replay& replay = result.replay;
  AllocatorRecord record;
  record.name = result.name;
  record.completed = replay.completed;
  record.limit_bytes = result.limit_bytes;
  record.peak_live_bytes = peak_live_bytes;
  if (result.smallest) {
    record.c_min_bytes = result.smallest->bytes;
    record.fails_again_at = result.smallest->fails_again_at;
  }
  if (record.c_min_bytes && peak_live_bytes > 0)
    record.c_min_over_peak =
        static_cast<double>(*record.c_min_bytes) / static_cast<double>(peak_live_bytes);
  record.reserved_peak_bytes = replay.peak_reserved_bytes;
  record.operations = replay.allocations + replay.releases;
  record.recoveries = replay.recoveries;
  record.calls_s = replay.calls_s;
  if (replay.calls_s > 0)
    record.operations_per_s = static_cast<double>(record.operations) / replay.calls_s;
  record.allocate = times_of(replay.allocate_times);
  record.release = times_of(replay.release_times);
  record.memory_kept_bytes = result.kept_bytes;
  record.failure = replay.failure;
  record.at_peak = replay.at_peak;
  if (!result.epochs.empty()) {
    CreepRecord& creep = record.creep.emplace();
    creep.kind = name_of(result.creep.kind);
    creep.bytes_per_epoch = result.creep.bytes_per_epoch;
    creep.p = result.creep.p;
    creep.rarest_step_epochs = rarest_step_shown(result.epochs.size());
    creep.epochs = result.epochs;
  }
  record.moments = replay.moments;
  return record;
}

}  // namespace

ReplayRecord record_of(const Played& played) {
  const TraceFacts& facts = played.facts;
  ReplayRecord record;
  TraceSummary& trace = record.trace = facts;
  trace.name = played.trace;
  trace.source = played.head.source;
  trace.sizes = played.head.sizes == Sizes::granted ? "granted" : "requested";
  trace.truncated = played.head.truncated;
  trace.unseen_frees = played.counts.unseen_frees;
  trace.missing_frees = played.counts.missing_frees;
  trace.clock_went_back = played.counts.clock_went_back;
  record.over = played.over;
  record.simulated = played.on_fake_gpu;
  record.paced = played.paced;
  record.touched = played.touched;
  if (!played.injected.empty()) record.injected = played.injected;
  for (const AllocatorResult& result : played.allocators)
    record.allocators.push_back(record_of(result, facts.peak_live_bytes));
  return record;
}

static void fill(Json& moment) {
  if (moment.is_null()) return;
  for (const char* const key : {"granted_bytes",
                                "reserved_bytes",
                                "free_bytes",
                                "largest_free_bytes",
                                "internal_waste",
                                "largest_block_index",
                                "reserve_slack"})
    moment.emplace(key, Json());
}

Json document_of(const ReplayRecord& record) {
  Json document = {{"schema", kSchema}, {"record", ReplayRecord::kName}};
  add_fields(document, record);
  document.emplace("injected", Json());
  for (Json& allocator : document["allocators"]) {
    for (const char* const key : {"c_min_bytes",
                                  "c_min_over_peak",
                                  "fails_again_at",
                                  "reserved_peak_bytes",
                                  "memory_kept_bytes",
                                  "operations_per_s",
                                  "failure",
                                  "at_peak",
                                  "creep"})
      allocator.emplace(key, Json());
    if (Json& failure = allocator["failure"]; !failure.is_null()) {
      failure.emplace("device_free_bytes", Json());
      fill(failure["then"]);
    }
    fill(allocator["at_peak"]);
    for (Json& moment : allocator["moments"]) fill(moment);
  }
  return document;
}

}  // namespace launchgap::allocation
