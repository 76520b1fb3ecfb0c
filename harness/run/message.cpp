#include "harness/run/message.h"

#include "harness/core/errors.h"

namespace launchgap {

Json to_json(const Message& message) {
  return tagged_to_json("message", message);
}

std::optional<Message> message_from_json(const Json& json) {
  try {
    return tagged_from_json<Message>("message", json);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace launchgap
