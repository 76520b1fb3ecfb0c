#include "benchmarks/pattern_player.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "benchmarks/launching.h"
#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/measure/device_timer.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

/// What only puts work into an order.
bool orders_streams(PatternAction action) {
  return action == PatternAction::record_event || action == PatternAction::wait_event;
}

/// What a graph can hold: the host need not wait within it.
bool fits_graph(const PatternOperation& operation) {
  return (is_work(operation.action) && !operation.blocks) || orders_streams(operation.action);
}

bool is_wait(PatternAction action) {
  return action == PatternAction::wait || action == PatternAction::wait_all;
}

}  // namespace

PatternPlayer::PatternPlayer(Device& device, const Pattern& pattern, PatternMode mode)
    : device_(device),
      pattern_(pattern),
      mode_(mode),
      totals_(totals_of(pattern)),
      kernel_(device.load(kernels::spin_kernel)),
      counter_(device.allocate(sizeof(unsigned))),
      counter_address_(counter_->address()) {
  if (uses_graphs() && !can(device.facts(), Capability::make_graphs))
    throw Unsupported("{} makes no graphs", device.facts().name);
  for (std::uint32_t i = 0; i < std::max(1u, totals_.streams); ++i)
    streams_.push_back(device_.create_stream());
  make_memory();
  make_calls();
}

PatternPlayer::~PatternPlayer() {
  try {
    // What an error left in the streams uses the memory that goes now.
    wait_for_all();
    release_rest();
  } catch (const Error&) {
    // The device is beyond help, and whoever plays has heard of it.
  }
}

void PatternPlayer::make_memory() {
  const std::uint64_t needed = totals_.device_bytes(), free = allocatable_bytes(device_);
  if (needed > free) {
    throw TooLarge("the pattern needs {} of memory, and {} are free",
                   bytes_text(static_cast<double>(needed)),
                   bytes_text(static_cast<double>(free)));
  }
  if (totals_.device_copy_bytes > 0) {
    from_ = device_.allocate(totals_.device_copy_bytes);
    to_ = device_.allocate(totals_.device_copy_bytes);
  }
  if (totals_.host_copy_bytes > 0) host_ = device_.allocate_shared(totals_.host_copy_bytes);
  const bool all_pooled = mode_ == PatternMode::pool;
  const std::size_t direct = all_pooled ? 0 : totals_.allocations - totals_.pooled;
  if (direct > 0) direct_ = device_.allocator(*streams_.front(), AllocatorKind::direct);
  if (direct < totals_.allocations)
    pool_ = device_.allocator(*streams_.front(), AllocatorKind::pool);
}

PatternPlayer::Call PatternPlayer::call_of(const PatternOperation& operation) {
  Call call;
  call.action = operation.action;
  call.blocks = operation.blocks;
  call.number = operation.number;
  call.gap_ns = operation.gap_ns;
  call.nanoseconds = static_cast<unsigned long long>(operation.device_ns);
  call.bytes = operation.bytes;
  call.stream = streams_[operation.stream].get();
  const bool of_event = orders_streams(operation.action) ||
                        (operation.action == PatternAction::wait && operation.number != 0);
  if (of_event) {
    if (events_.size() <= operation.number) events_.resize(operation.number + 1);
    std::unique_ptr<Event>& event = events_[operation.number];
    if (!event) event = device_.create_event(EventUse::order);
    call.event = event.get();
  }
  if (is_allocation(operation.action)) {
    if (blocks_.size() <= operation.number) blocks_.resize(operation.number + 1);
    const bool pooled = !direct_ || operation.action == PatternAction::allocate_pooled;
    blocks_[operation.number] = {nullptr, operation.bytes, pooled ? pool_.get() : direct_.get()};
  }
  return call;
}

void PatternPlayer::make_calls() {
  std::vector<PatternOperation> own;
  for (const PatternOperation& operation : pattern_.operations) {
    if (operation.action == PatternAction::ahead) {
      ahead_.push_back(call_of(operation));
    } else {
      own.push_back(operation);
      operations_.push_back(call_of(operation));
    }
  }
  if (uses_graphs() && !ahead_.empty()) {
    // All that follows is on the first stream, and waits for as long as any stream did.
    Call longest = *std::ranges::max_element(ahead_, {}, &Call::nanoseconds);
    longest.stream = streams_.front().get();
    ahead_ = {longest};
  }
  const bool graphs = can(device_.facts(), Capability::make_graphs);
  for (std::size_t i = 0; i < own.size();) {
    const auto end_of = [&](auto&& belongs) {
      std::size_t end = i;
      while (end < own.size() && belongs(own[end])) ++end;
      return end;
    };
    if (uses_graphs()) {
      const std::size_t end = end_of(fits_graph);
      add_segment(i, std::max(end, i + 1));
      i = std::max(end, i + 1);
    } else if (graphs && is_work(own[i].action) && own[i].number != 0) {
      const std::size_t end = end_of([&](const PatternOperation& one) {
        return is_work(one.action) && one.number == own[i].number;
      });
      add_graph(i, end, *operations_[i].stream);
      i = end;
    } else {
      calls_.push_back(operations_[i++]);
    }
  }
  for (const Call& call : calls_) {
    gaps_ns_ += call.gap_ns;
    // Captured again each time, with the gaps within.
    if (mode_ != PatternMode::graph_update || !call.graph) continue;
    for (std::size_t i = 1; i < call.count; ++i) gaps_ns_ += operations_[call.first + i].gap_ns;
  }
}

void PatternPlayer::add_graph(std::size_t first, std::size_t end, Stream& stream) {
  Call call = operations_[first];
  call.action = PatternAction::kernel;
  call.stream = &stream;
  call.first = first;
  call.count = end - first;
  const auto calls = std::span(operations_).subspan(first, call.count);
  graphs_.push_back(device_.instantiate(*capture(calls, stream, false)));
  call.graph = graphs_.back().get();
  call.graph->upload(stream);
  stream.wait();
  calls_.push_back(call);
}

/// Graphs, and what is between them, follow each other on one stream. Alone, an operation is no
/// graph. What the host does before the first of a graph stays, since it did it after a wait; of
/// what it did between the others nothing stays.
void PatternPlayer::add_segment(std::size_t first, std::size_t end) {
  Stream& stream = *streams_.front();
  const auto calls = std::span(operations_).subspan(first, end - first);
  if (std::ranges::all_of(calls, orders_streams, &Call::action)) {
    // On one stream it is there anyway; the host's time before the first stays.
    lost_gap_ns_ += calls.front().gap_ns;
    return;
  }
  if (calls.size() > 1) {
    add_graph(first, end, stream);
  } else {
    calls_.push_back(calls.front());
    calls_.back().stream = &stream;
    calls_.back().event = nullptr;
  }
  calls_.back().gap_ns += std::exchange(lost_gap_ns_, 0);
}

Event& PatternPlayer::order_event() {
  if (used_order_events_ == order_events_.size())
    order_events_.push_back(device_.create_event(EventUse::order));
  return *order_events_[used_order_events_++];
}

/// The others go on behind what `from` has.
void PatternPlayer::fork(Stream& from, const std::vector<Stream*>& others) {
  if (others.empty()) return;
  Event& event = order_event();
  from.record(event);
  for (Stream* const other : others) other->wait_for(event);
}

/// `into` goes on behind what the others have.
void PatternPlayer::join(Stream& into, const std::vector<Stream*>& others) {
  for (Stream* const other : others) {
    Event& event = order_event();
    other->record(event);
    into.wait_for(event);
  }
}

std::vector<Stream*> PatternPlayer::other_streams(std::span<const Call> calls, const Stream& main) {
  std::vector<Stream*> others;
  for (const Call& call : calls) {
    if (call.stream != &main && std::ranges::find(others, call.stream) == others.end())
      others.push_back(call.stream);
  }
  return others;
}

/// All streams of the calls begin behind this one, and end before it goes on; and so do those of
/// each graph among them, behind the stream of its first work.
std::unique_ptr<Graph> PatternPlayer::capture(std::span<Call> calls, Stream& main, bool with_gaps) {
  used_order_events_ = 0;
  const std::vector<Stream*> others = other_streams(calls, main);
  std::vector<const Event*> recorded;
  return device_.capture(main, [&] {
    fork(main, others);
    for (std::size_t i = 0; i < calls.size();) {
      std::size_t end = i + 1;
      const bool of_graph = is_work(calls[i].action) && calls[i].number != 0;
      while (of_graph && end < calls.size() && is_work(calls[end].action) &&
             calls[end].number == calls[i].number)
        ++end;
      const auto group = calls.subspan(i, end - i);
      const std::vector<Stream*> branches = other_streams(group, *group.front().stream);
      if (with_gaps && i > 0 && group.front().gap_ns > 0)
        spin_until(now_ns() + group.front().gap_ns);
      fork(*group.front().stream, branches);
      for (Call& call : group) {
        if (call.action == PatternAction::record_event) recorded.push_back(call.event);
        // An event of a graph before is over: the graphs follow each other.
        const bool over = call.action == PatternAction::wait_event &&
                          std::ranges::find(recorded, call.event) == recorded.end();
        if (!over) perform(call);
      }
      join(*group.front().stream, branches);
      i = end;
    }
    join(main, others);
  });
}

void PatternPlayer::launch_kernel(Call& call) {
  void* arguments[] = {&call.nanoseconds, &counter_address_};
  call.stream->launch(*kernel_, {1, 1}, arguments);
}

void PatternPlayer::copy(const Call& call) {
  Stream& stream = *call.stream;
  if (call.action == PatternAction::copy_to_device) {
    stream.copy(from_->address(), host_->address(), call.bytes, CopyDirection::host_to_device);
  } else if (call.action == PatternAction::copy_to_host) {
    stream.copy(host_->address(), from_->address(), call.bytes, CopyDirection::device_to_host);
  } else {
    stream.copy(to_->address(), from_->address(), call.bytes, CopyDirection::device_to_device);
  }
  if (call.blocks) stream.wait();
}

/// One call of the host, without the gap before it.
void PatternPlayer::perform(Call& call) {
  switch (call.action) {
    case PatternAction::ahead:
    case PatternAction::kernel:
      return launch_kernel(call);
    case PatternAction::copy_to_device:
    case PatternAction::copy_to_host:
    case PatternAction::copy:
      return copy(call);
    case PatternAction::fill:
      return call.stream->fill_bytes(to_->address(), 0, call.bytes);
    case PatternAction::wait:
      return call.event ? call.event->wait() : call.stream->wait();
    case PatternAction::wait_all:
      return wait_for_all();
    case PatternAction::allocate:
    case PatternAction::allocate_pooled:
      blocks_[call.number].address = blocks_[call.number].allocator->allocate(call.bytes);
      return;
    case PatternAction::release:
      return release(blocks_[call.number]);
    case PatternAction::record_event:
      return call.stream->record(*call.event);
    case PatternAction::wait_event:
      return call.stream->wait_for(*call.event);
  }
}

PatternTimes PatternPlayer::play() {
  PatternTimes times;
  times.begin_ns = now_ns();
  enqueue_work_ahead();
  const std::int64_t begin = now_ns();
  for (Call& call : calls_) {
    if (call.gap_ns > 0) spin_until(now_ns() + call.gap_ns);
    if (call.graph) {
      if (mode_ == PatternMode::graph_update) {
        const auto calls = std::span(operations_).subspan(call.first, call.count);
        call.graph->update(*capture(calls, *call.stream, true));
      }
      call.graph->launch(*call.stream);
    } else if (is_wait(call.action) || call.blocks) {
      const std::int64_t from = now_ns();
      perform(call);
      times.waits_ns += now_ns() - from;
    } else if (is_allocation(call.action) || call.action == PatternAction::release) {
      const std::int64_t from = now_ns();
      perform(call);
      times.allocations_ns += now_ns() - from;
    } else {
      perform(call);
    }
  }
  const std::int64_t returned = now_ns();
  wait_for_all();
  const std::int64_t end = now_ns();
  times.total_ns = end - begin;
  times.calls_ns = returned - begin - gaps_ns_ - times.waits_ns - times.allocations_ns;
  times.waits_ns += end - returned;
  release_rest();
  return times;
}

void PatternPlayer::enqueue_work_ahead() {
  for (Call& call : ahead_) launch_kernel(call);
}

void PatternPlayer::wait_for_all() {
  for (const auto& stream : streams_) stream->wait();
}

void PatternPlayer::release(Block& block) {
  block.allocator->release(std::exchange(block.address, nullptr), block.bytes);
}

void PatternPlayer::release_rest() {
  for (Block& block : blocks_) {
    if (block.address) release(block);
  }
}

void PatternPlayer::verify() {
  streams_.front()->fill_bytes(counter_address_, 0, sizeof(unsigned));
  streams_.front()->wait();
  play();
  unsigned ran = 0;
  device_.read(*counter_, 0, &ran, sizeof ran);
  const std::size_t expected = kernels();
  if (ran != expected) throw WrongResult("a pattern of {} kernels ran {} of them", expected, ran);
  if (totals_.host_copy_bytes > 0) check_copies();
}

void PatternPlayer::check_copies() {
  constexpr std::uint64_t kMost = 4096;
  const auto bytes = static_cast<std::size_t>(std::min(kMost, totals_.host_copy_bytes));
  constexpr unsigned char kMark = 0xA5;
  Stream& stream = *streams_.front();
  std::memset(host_->address(), kMark, bytes);
  stream.copy(from_->address(), host_->address(), bytes, CopyDirection::host_to_device);
  stream.copy(to_->address(), from_->address(), bytes, CopyDirection::device_to_device);
  stream.wait();
  std::vector<unsigned char> found(bytes);
  device_.read(*to_, 0, found.data(), bytes);
  if (std::ranges::any_of(found, [](unsigned char byte) { return byte != kMark; }))
    throw WrongResult("a copy of {} bytes did not bring what it took", bytes);
}

/// What the device takes for the first of some calls, one after the other, and what it took for
/// them when they were recorded.
PatternPlayer::WorkTimes PatternPlayer::time_work(bool (*belongs)(PatternAction)) {
  constexpr std::size_t kMost = 512, kAtOnce = 64;
  std::vector<Call> calls;
  for (const Call& call : operations_) {
    if (belongs(call.action) && calls.size() < kMost) {
      calls.push_back(call);
      calls.back().stream = streams_.front().get();
      calls.back().blocks = false;
    }
  }
  WorkTimes times;
  times.calls = calls.size();
  DeviceTimer timer(device_, *streams_.front());
  for (std::size_t first = 0; first < calls.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, calls.size() - first);
    const double each = timer.time(static_cast<int>(count), [&](int i) {
      perform(calls[first + static_cast<std::size_t>(i)]);
    });
    times.here_ns += each * static_cast<double>(count);
    for (std::size_t i = 0; i < count; ++i)
      times.recorded_ns += static_cast<double>(calls[first + i].nanoseconds);
  }
  return times;
}

double PatternPlayer::kernel_excess_ns() {
  const WorkTimes times =
      time_work([](PatternAction action) { return action == PatternAction::kernel; });
  if (times.calls == 0) return 0;
  return (times.here_ns - times.recorded_ns) / static_cast<double>(times.calls);
}

double PatternPlayer::copy_factor() {
  const WorkTimes times = time_work(
      [](PatternAction action) { return is_copy(action) || action == PatternAction::fill; });
  return times.recorded_ns > 0 ? times.here_ns / times.recorded_ns : 1;
}

std::size_t PatternPlayer::kernels() const {
  const auto is_ahead = [](const PatternOperation& one) {
    return one.action == PatternAction::ahead;
  };
  const auto all = static_cast<std::size_t>(std::ranges::count_if(pattern_.operations, is_ahead));
  return totals_.kernels - all + ahead_.size();
}

std::size_t PatternPlayer::recorded_works() const {
  // The host device copies by tasks like any other.
  const bool by_tasks = backend_of(device_.facts()).recorded_by == RecordedBy::backend;
  return kernels() + (by_tasks ? totals_.copies + totals_.fills : 0);
}

std::string PatternPlayer::method() const {
  std::string text = launch_method(*kernel_, device_.facts());
  if (!graphs_.empty()) text += fmt::format("; {}", counted(graphs_.size(), "graph"));
  if (totals_.graphs > 0 && graphs_.empty()) text += "; graphs as their kernels, one by one";
  for (const auto* const allocator : {direct_.get(), pool_.get()}) {
    if (allocator) text += "; " + allocator->method();
  }
  return text + std::string(remark_on_gate(device_));
}

}  // namespace launchgap
