// Launching calls that take longer at times, and what the thread that calls can see of the reason.
#pragma once

#include <random>
#include <vector>

#include "harness/record/field_rules.h"
#include "tests/fake_cuda/distribution.h"

namespace launchgap::fake {

/// What happens to the calling thread, for real: it sleeps, touches new pages, moves to another
/// CPU.
enum class HiccupSign { none, sleep, fault, move };

struct Hiccup {
  double every = 100;  // launching calls, on average
  Distribution ns;     // how much longer the call takes
  HiccupSign sign = HiccupSign::none;

  static void fields(auto& self, auto&& field) {
    field("every", self.every, at_least(1));
    field("ns", self.ns);
    field.optional("sign",
                   self.sign,
                   Names<HiccupSign>{{{"none", HiccupSign::none},
                                      {"sleep", HiccupSign::sleep},
                                      {"fault", HiccupSign::fault},
                                      {"move", HiccupSign::move}}});
  }
};

/// Draws which of them strike one call: shows their signs, and returns how much longer it takes.
double strike(const std::vector<Hiccup>& hiccups, std::mt19937_64& random);

}  // namespace launchgap::fake
