// Tensor memory, and the products of tcgen05 whose sums are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "kernels/ladder/emulated_operand.h"

namespace launchgap::kernels::emulated {

/// What a thread has to do with tensor memory.
struct TensorMemoryUse {
  struct Load {
    float* to;
    std::vector<float> values;
  };

  bool fenced = false;         // since it last waited for others
  bool unfenced_load = false;  // since its last fence before a barrier
  unsigned loaded_at = 0;      // of its own clock
  std::vector<Load> loading;   // not waited for
};

class TensorMemory {
 public:
  static constexpr unsigned kLanes = 128, kColumns = 512;

  /// Whose address is somewhere, which nobody can guess. Throws Fault where a GPU would wait for
  /// ever, or trap.
  unsigned take(unsigned columns, unsigned random, Place place);
  void give(unsigned address, unsigned columns, Place place);
  void check_all_given_back() const;

  /// A product that will be computed.
  void ask(unsigned sums,
           const OperandInShared& a,
           const OperandInShared& b,
           unsigned kind,
           bool add,
           Place place);
  /// How many; the number of the last one.
  unsigned asked_for() const { return asked_for_; }
  /// All up to this one.
  void compute(unsigned last, const std::byte* shared_memory);

  /// `count` columns of a lane, for a thread of the warp that has it, which has seen so many
  /// products.
  std::vector<float> load(unsigned address,
                          unsigned count,
                          unsigned warp,
                          unsigned lane,
                          unsigned seen_products,
                          Place place) const;

 private:
  struct Kind {
    unsigned rows, columns;
    bool b_along_columns;
  };
  struct Product {
    unsigned number, column;
    Kind kind;
    OperandInShared a, b;
    bool add;

    std::size_t place_in_b(unsigned k, unsigned of_column) const {
      return kind.b_along_columns ? b.along_columns(k, of_column) : b.along_depth(of_column, k);
    }
  };

  static Kind kind_of(unsigned descriptor, Place place);
  void check_columns(unsigned column, unsigned count, Place place) const;

  unsigned first_ = 0, taken_ = 0;
  std::vector<float> values_;          // of each lane all columns
  std::vector<unsigned> products_of_;  // of each column the last product, 0: none
  unsigned asked_for_ = 0;
  std::deque<Product> pending_;
};

}  // namespace launchgap::kernels::emulated
