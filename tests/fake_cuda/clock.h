// The clock of clock.cpp, for the fake libraries.
#pragma once

extern "C" {

/// Sets the process's clock to `until_ns` of CLOCK_MONOTONIC, and the thread's of its processor
/// time if it would have been `spinning` until then. False, and nothing is done, where several
/// threads call the driver, which wait for real. Null where the clock is not loaded.
[[gnu::weak]] bool launchgap_fake_clock_skip(double until_ns, bool spinning);
}
