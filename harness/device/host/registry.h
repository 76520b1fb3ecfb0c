// The list of libraries that this process has loaded for the host device.
#pragma once

#include "harness/device/facts.h"

namespace launchgap::host {
void note_loaded(const LoadedLibrary& library);
}
