// The readers of what others recorded, one for each form.
#pragma once

#include <filesystem>
#include <string_view>

#include "harness/import/recording.h"

namespace launchgap::recording {

// --- SQLite: what nsys exports, and what nvprof wrote ---

/// Of Nsight Systems, `nsys export --type sqlite` (schemas 2.7 to 3.25 were seen), or of nvprof,
/// `nvprof --export-profile`. Throws Error that does not name the file.
Recording read_sqlite_report(const std::filesystem::path& file);

class Database;

// The two forms, of a file that is open.
void read_nsys(const Database& database, Recording& recording);
void read_nvprof(const Database& database, Recording& recording);

// --- Problems of minimalloc (`id,lower,upper,size`): blocks and when they are live ---

/// Whether a text begins with the head of such a file.
bool is_minimalloc(std::string_view begin);

/// Throws Error that names the line, and not the file.
Recording read_minimalloc(const std::filesystem::path& file);

// --- Logs of RAPIDS Memory Manager: of its logging_resource_adaptor, and `rmm.csv_log()` ---

/// Whether a text begins with the head of such a log.
bool is_rmm_log(std::string_view begin);

/// Throws Error that names the line, and not the file.
Recording read_rmm_log(const std::filesystem::path& file);

// --- Memory snapshots of PyTorch (torch.cuda.memory._snapshot() and _dump_snapshot()) ---

/// What its allocator was asked for and took from the driver, and what was live at the end. Of a
/// pickle. Throws Error that names the entry or the byte at fault, and not the file.
Recording read_torch_snapshot(const std::filesystem::path& file);

// --- What `launchgap record` had written from within a program ---

/// Whether a file begins as one.
bool is_raw_recording(std::string_view begin);

/// Of a program that crashed too, up to its last whole block. Throws Error that does not name the
/// file.
Recording read_raw_recording(const std::filesystem::path& file);

// --- XPlanes of the profilers of TensorFlow and JAX ---

/// Whether bytes begin as one: a protobuf whose first plane has a name that they give.
bool is_xplane(std::string_view begin);

/// Memory is that of the longest plane, and of the events that are kept. Throws Error that names
/// the byte at fault, and not the file.
Recording read_xplane(const std::filesystem::path& file);

// --- Chrome traces of CUDA programs, as PyTorch's profiler (Kineto), TensorFlow and JAX write
// them ---

/// An object with "traceEvents", or a bare list of events; of 2020 and of now. Memory is that of
/// the events that are kept, and not of the file. Throws Error that does not name the file.
Recording read_chrome_trace(const std::filesystem::path& file);

}  // namespace launchgap::recording
