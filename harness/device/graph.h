// Graphs: work that is recorded once and launched as a whole.
#pragma once

#include <cstddef>

namespace launchgap {

class Stream;

/// Kernels and their order, recorded to be launched together, as often as wanted.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual std::size_t nodes() const = 0;
};

/// A graph made ready to run.
class ExecutableGraph {
 public:
  virtual ~ExecutableGraph() = default;
  /// Brings onto the device what the first launch would otherwise bring.
  virtual void upload(Stream& stream) = 0;
  virtual void launch(Stream& stream) = 0;
  /// Takes over the parameters of a graph of the same shape.
  virtual void update(const Graph& graph) = 0;
};

}  // namespace launchgap
