// How wide what people read may be.
#pragma once

#include <cstddef>
#include <optional>

namespace launchgap {

/// The columns of the terminal that standard output is; what COLUMNS says goes before. Absent where
/// neither is known: a file or a pipe.
std::optional<std::size_t> terminal_columns();

/// Columns of prose: those of the terminal, from 40 to 100; else 100.
std::size_t text_columns();

}  // namespace launchgap
