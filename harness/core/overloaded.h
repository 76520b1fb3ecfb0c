// Several lambdas as one function object, for std::visit.
#pragma once

namespace launchgap {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

}  // namespace launchgap
