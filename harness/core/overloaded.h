// Several lambdas as one function object, for std::visit.
#pragma once

namespace launchgap {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
// clang 14, and so clang-tidy, does not deduce an aggregate's arguments by itself.
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace launchgap
