// Things whose memory is used again.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

namespace lhtree {

/// What one task leaves behind for the next, on any thread. To take memory anew each time would
/// have the system clear its pages again and again, and leave gaps in the heap.
template <class Thing>
class Spares {
 public:
  /// A thing that was given, or a new one.
  Thing take() {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) return {};
    Thing thing = std::move(spare_.back());
    spare_.pop_back();
    return thing;
  }

  void give(Thing thing) {
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(thing));
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    spare_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<Thing> spare_;
};

}  // namespace lhtree
