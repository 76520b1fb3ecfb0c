// An event of a Chrome trace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace launchgap::recording {

enum class EventField {
  phase,
  category,
  name,
  pid,
  tid,
  time,
  duration,
  // of its arguments
  correlation,
  device,
  context,
  stream,
  bytes,
  address,
  device_type,
  sync_kind,  // of a wait; the next two of the event that it waits for
  event_stream,
  event_record,
  group,  // from here on of TensorFlow's and JAX's profiler
  step,
  allocator,
  kernel_details,
  copy_details,
  fill_details,
  own_name,  // of a row, a line; of TensorFlow's op
};
inline constexpr std::size_t kEventFields = static_cast<std::size_t>(EventField::own_name) + 1;

/// An event as it stands in the file: numbers are their text, and what is absent is empty.
struct ChromeEvent {
  std::array<std::string, kEventFields> texts;
  std::array<std::int32_t, 3> grid{1, 1, 1}, block{1, 1, 1};

  std::string& operator[](EventField field) { return texts[static_cast<std::size_t>(field)]; }
  const std::string& operator[](EventField field) const {
    return texts[static_cast<std::size_t>(field)];
  }
  void clear() {
    for (std::string& text : texts) text.clear();
    grid = block = {1, 1, 1};
  }
};

}  // namespace launchgap::recording
