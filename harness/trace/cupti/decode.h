// CUPTI's buffers of records, as the activity model has them, and its versions in words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "harness/device/activity.h"
#include "harness/trace/cupti/abi.h"

namespace launchgap::cupti {

/// What of a library decoding depends on.
struct RecordReader {
  decltype(abi::CuptiFunctions::cuptiActivityGetNextRecord) next;  // only it knows the strides
  std::uint32_t version;                                           // which fields are there
};

/// Appends the records of a buffer's first `valid_bytes` to `trace`. A record of a kind that is not
/// known is counted in `trace.unknown`; where the library itself cannot step over one, what follows
/// is not read and counts as one. Frees what CUPTI leaves to the reader.
void decode(const RecordReader& reader,
            std::uint8_t* buffer,
            std::size_t valid_bytes,
            activity::Trace& trace);

activity::OverheadKind overhead_kind(abi::OverheadKind kind);

/// What a call is for, by its number in the domain.
activity::Purpose driver_purpose(std::uint32_t call);
activity::Purpose runtime_purpose(std::uint32_t call);

/// "13.0 (API 130001)", "12.4 (API 22)".
std::string version_text(std::uint32_t version);

}  // namespace launchgap::cupti
