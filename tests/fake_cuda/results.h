// The contents of device memory as far as they are not computed yet.
//
// A benchmark repeats the same product hundreds of times and looks at few of its elements. So the
// result of a repeatable operation is computed when somebody reads it (only the elements that are
// read, when they are few), and an operation whose result is still what memory holds is not
// executed again.
#pragma once

#include <list>
#include <vector>

#include "tests/fake_cuda/memory.h"
#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

class Results {
 public:
  explicit Results(const AddressMap& addresses) : addresses_(addresses) {}

  /// Takes place of executing `operation`; its ranges are accessible.
  void apply(Operation operation);

  /// Before the host or an operation reads `range`.
  void before_read(const Range& range);

  /// Before something overwrites `range`; `all` of it, or perhaps parts.
  void before_write(const Range& range, bool all);

  /// The memory at `range` is free: its contents matter to nobody but to what is still to be
  /// computed from them.
  void freed(const Range& range);

  /// Forgets what is not computed: the context is gone.
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    Operation operation;
    bool computed = false;
    bool orphan = false;               // its memory is free
    std::vector<BlockPointer> blocks;  // of what it reads and writes: they outlive being freed

    const Range& write() const { return operation.writes.front(); }
    bool reads(const Range& range) const;
    bool pending_reader(const Range& range) const { return !computed && reads(range); }
  };

  bool read_later(const Range& range) const;
  bool can_wait(const Operation& operation) const;
  void compute(Entry& entry);
  void drop_orphans();

  const AddressMap& addresses_;
  std::list<Entry> entries_;
};

}  // namespace launchgap::fake
