// The kinds of events that a file of events has, each described once for writer and reader.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "harness/import/recording.h"
#include "harness/record/json.h"

namespace launchgap::recording {

/// A column: how its value is written down and read back, where need be beside the event before.
template <class Event>
struct EventColumn {
  const char* key;
  void (*write)(const Event& event, const Event& before, std::string& text);
  /// False for a value that cannot be.
  bool (*read)(Event& event, const Event& before, const Json& json);
  bool optional = false;
};

/// Enumerators are their numbers; true and false are 1 and 0.
template <class Value>
void write_value(Value value, std::string& text) {
  const auto out = std::back_inserter(text);
  if constexpr (std::is_signed_v<Value>) {
    fmt::format_to(out, "{}", static_cast<std::int64_t>(value));
  } else {
    fmt::format_to(out, "{}", static_cast<std::uint64_t>(value));
  }
}

template <class Value>
bool read_value(const Json& json, Value& value) {
  const auto take = [&]<class Integer>(auto number) {
    if (!std::in_range<Integer>(number)) return false;
    value = static_cast<Value>(number);
    return static_cast<decltype(number)>(value) == number;  // 2 is no bool
  };
  const auto take_any = [&](auto number) {
    if constexpr (std::is_enum_v<Value>) {
      return take.template operator()<std::underlying_type_t<Value>>(number);
    } else if constexpr (std::same_as<Value, bool>) {
      return take.template operator()<std::uint8_t>(number);
    } else {
      return take.template operator()<Value>(number);
    }
  };
  if (json.is_number_unsigned()) return take_any(json.get<std::uint64_t>());
  return json.is_number_integer() && take_any(json.get<std::int64_t>());
}

template <class Event, auto member>
constexpr EventColumn<Event> column(const char* key) {
  return {
      key,
      [](const Event& event, const Event&, std::string& text) { write_value(event.*member, text); },
      [](Event& event, const Event&, const Json& json) { return read_value(json, event.*member); }};
}

/// One that files of before there was one lack.
template <class Event, auto member>
constexpr EventColumn<Event> later_column(const char* key) {
  EventColumn<Event> made = column<Event, member>(key);
  made.optional = true;
  return made;
}

/// Times are written as differences, which have a third of the digits: a start from the event
/// before.
template <class Event, std::int64_t Event::*member>
constexpr EventColumn<Event> begin_column() {
  return {"begin_ns",
          [](const Event& event, const Event& before, std::string& text) {
            write_value(minus(event.*member, before.*member), text);
          },
          [](Event& event, const Event& before, const Json& json) {
            std::int64_t difference = 0;
            if (!read_value(json, difference)) return false;
            event.*member = plus(before.*member, difference);
            return true;
          }};
}

/// And an end from its own begin, which is read already.
template <class Event>
constexpr EventColumn<Event> end_column() {
  return {"end_ns",
          [](const Event& event, const Event&, std::string& text) {
            write_value(minus(event.end_ns, event.begin_ns), text);
          },
          [](Event& event, const Event&, const Json& json) {
            std::int64_t difference = 0;
            if (!read_value(json, difference)) return false;
            event.end_ns = plus(event.begin_ns, difference);
            return true;
          }};
}

template <auto extents, int axis>
constexpr EventColumn<activity::KernelRun> extent(const char* key) {
  using activity::KernelRun;
  return {key,
          [](const KernelRun& kernel, const KernelRun&, std::string& text) {
            write_value((kernel.*extents)[axis], text);
          },
          [](KernelRun& kernel, const KernelRun&, const Json& json) {
            return read_value(json, (kernel.*extents)[axis]);
          }};
}

/// The columns of what begins and ends: its times, and then these.
template <class Event, class... More>
constexpr auto timed(const More&... more) {
  return std::array{begin_column<Event, &Event::begin_ns>(), end_column<Event>(), more...};
}

template <class Event>
struct Kind;  // name, columns, list(process)

template <>
struct Kind<activity::Call> {
  using Event = activity::Call;
  static constexpr const char* name = "call";
  static constexpr auto columns = timed<Event>(column<Event, &Event::correlation>("correlation"),
                                               column<Event, &Event::thread>("thread"),
                                               column<Event, &Event::id>("name"),
                                               column<Event, &Event::domain>("domain"),
                                               column<Event, &Event::purpose>("purpose"));
  static auto& list(auto& process) { return process.trace.calls; }
};

template <>
struct Kind<activity::KernelRun> {
  using Event = activity::KernelRun;
  static constexpr const char* name = "kernel";
  static constexpr auto columns = timed<Event>(column<Event, &Event::correlation>("correlation"),
                                               column<Event, &Event::stream>("stream"),
                                               column<Event, &Event::name>("name"),
                                               extent<&Event::grid, 0>("grid_x"),
                                               extent<&Event::grid, 1>("grid_y"),
                                               extent<&Event::grid, 2>("grid_z"),
                                               extent<&Event::block, 0>("block_x"),
                                               extent<&Event::block, 1>("block_y"),
                                               extent<&Event::block, 2>("block_z"));
  static auto& list(auto& process) { return process.trace.kernels; }
};

template <>
struct Kind<activity::Transfer> {
  using Event = activity::Transfer;
  static constexpr const char* name = "transfer";
  static constexpr auto columns = timed<Event>(column<Event, &Event::correlation>("correlation"),
                                               column<Event, &Event::stream>("stream"),
                                               column<Event, &Event::bytes>("bytes"),
                                               column<Event, &Event::fill>("fill"),
                                               later_column<Event, &Event::from_host>("from_host"),
                                               later_column<Event, &Event::to_host>("to_host"));
  static auto& list(auto& process) { return process.trace.transfers; }
};

template <>
struct Kind<activity::Graph> {
  using Event = activity::Graph;
  static constexpr const char* name = "graph";
  static constexpr auto columns = timed<Event>(column<Event, &Event::correlation>("correlation"),
                                               column<Event, &Event::stream>("stream"),
                                               column<Event, &Event::graph>("graph"));
  static auto& list(auto& process) { return process.trace.graphs; }
};

template <>
struct Kind<activity::Overhead> {
  using Event = activity::Overhead;
  static constexpr const char* name = "overhead";
  static constexpr auto columns = timed<Event>(column<Event, &Event::correlation>("correlation"),
                                               column<Event, &Event::kind>("overhead"));
  static auto& list(auto& process) { return process.trace.overheads; }
};

template <>
struct Kind<activity::Wait> {
  using Event = activity::Wait;
  static constexpr const char* name = "wait";
  static constexpr auto columns =
      timed<Event>(column<Event, &Event::correlation>("correlation"),
                   column<Event, &Event::type>("type"),
                   later_column<Event, &Event::stream>("stream"),
                   later_column<Event, &Event::event_stream>("event_stream"),
                   later_column<Event, &Event::recorded_by>("recorded_by"));
  static auto& list(auto& process) { return process.trace.waits; }
};

template <>
struct Kind<activity::Memory> {
  using Event = activity::Memory;
  static constexpr const char* name = "memory";
  static constexpr auto columns =
      std::to_array<EventColumn<Event>>({begin_column<Event, &Event::at_ns>(),
                                         column<Event, &Event::address>("address"),
                                         column<Event, &Event::bytes>("bytes"),
                                         column<Event, &Event::pool>("pool"),
                                         column<Event, &Event::correlation>("correlation"),
                                         column<Event, &Event::kind>("memory"),
                                         column<Event, &Event::release>("release"),
                                         later_column<Event, &Event::gpu>("gpu")});
  static auto& list(auto& process) { return process.trace.memory; }
};

template <>
struct Kind<Range> {
  using Event = Range;
  static constexpr const char* name = "range";
  static constexpr auto columns =
      timed<Event>(column<Event, &Event::thread>("thread"), column<Event, &Event::name>("name"));
  static auto& list(auto& process) { return process.ranges; }
};

template <>
struct Kind<Allocation> {
  using Event = Allocation;
  static constexpr const char* name = "allocation";
  static constexpr auto columns =
      std::to_array<EventColumn<Event>>({begin_column<Event, &Event::at_ns>(),
                                         column<Event, &Event::action>("action"),
                                         column<Event, &Event::address>("address"),
                                         column<Event, &Event::bytes>("bytes"),
                                         column<Event, &Event::gpu>("gpu"),
                                         column<Event, &Event::stream>("stream"),
                                         column<Event, &Event::thread>("thread")});
  static auto& list(auto& process) { return process.allocations; }
};

/// When an event began and ended, on which nothing depends but where it is put.
template <class Event>
std::pair<std::int64_t, std::int64_t> times_of(const Event& event) {
  if constexpr (requires { event.at_ns; }) {
    return {event.at_ns, event.at_ns};
  } else {
    return {event.begin_ns, event.end_ns};
  }
}

/// Calls `what.template operator()<Event>()` for each kind.
template <class What>
void for_each_kind(What&& what) {
  what.template operator()<activity::Call>();
  what.template operator()<activity::KernelRun>();
  what.template operator()<activity::Transfer>();
  what.template operator()<activity::Graph>();
  what.template operator()<activity::Overhead>();
  what.template operator()<activity::Wait>();
  what.template operator()<activity::Memory>();
  what.template operator()<Range>();
  what.template operator()<Allocation>();
}

/// When events began first and ended last, of those that have a time; both 0 if none has.
struct EventSpan {
  std::int64_t first_ns = 0, last_ns = 0;

  std::int64_t length_ns() const { return last_ns - first_ns; }
  void add(std::int64_t begin_ns, std::int64_t end_ns) {
    if (begin_ns <= 0) return;
    first_ns = first_ns == 0 ? begin_ns : std::min(first_ns, begin_ns);
    last_ns = std::max({last_ns, begin_ns, end_ns});
  }
  template <class Event>
  void add(const Event& event) {
    const auto [begin_ns, end_ns] = times_of(event);
    add(begin_ns, end_ns);
  }
};

}  // namespace launchgap::recording
