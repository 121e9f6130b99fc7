// Sums of a member's rows by class.
//
// All trees of a member grow from the same rows: added up once by class, they give every
// root its sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "pages.hpp"
#include "statistics.hpp"
#include "stop.hpp"
#include "sum_kernels.hpp"
#include "table.hpp"

namespace lhtree {

class ClassSums {
 public:
  /// Add up these rows of a table without missing values, each counting once.
  template <class T>
  ClassSums(const Table<T>& table, const PageVector<std::uint32_t>& rows, const std::int32_t* code,
            std::int64_t n_classes, const StopFlag& stop)
      : width_(table.width), sums_(2 * n_classes * table.width, 0.0) {
    constexpr std::int64_t piece = 256, ahead = 16;
    const std::vector<double> origin(width_, 0.0);
    const auto n_rows = static_cast<std::int64_t>(rows.size());
    const T* row[piece + ahead];
    std::uint32_t group[piece];
    for (std::int64_t begin = 0; begin < n_rows; begin += piece) {
      check_stop(stop);
      const std::int64_t n = std::min(piece, n_rows - begin);
      const std::int64_t n_found = std::min(piece + ahead, n_rows - begin);
      for (std::int64_t i = 0; i < n_found; ++i) row[i] = table.row(rows[begin + i]);
      for (std::int64_t i = 0; i < n; ++i)
        group[i] = static_cast<std::uint32_t>(code[rows[begin + i]]);
      add_grouped(row, n_found == n + ahead ? row + ahead : nullptr, group, n, width_,
                  origin.data(), false, sums_.data());
    }
  }

  /// Fill the sums of the root of the tree that separates `target`, of all these rows.
  void sum_root(const NodeRows& rows, std::int32_t target, Moments& moments) const {
    clear_sums(moments);
    const std::int64_t n_classes = static_cast<std::int64_t>(sums_.size()) / (2 * width_);
    for (std::int64_t k = 0; k < n_classes; ++k)
      add_group(sums_.data() + 2 * k * width_, k == target, moments);
    finish_sums(rows, moments);
  }

 private:
  std::int64_t width_;
  std::vector<double> sums_;  // [n_classes, sums or squares, width]
};

/// The sums by class of each member. The first of its trees to ask has them made, the last
/// one has their memory freed.
class MemberSums {
 public:
  MemberSums(std::size_t n_members, std::size_t n_trees) : n_trees_(n_trees), member_(n_members) {}

  template <class Make>
  std::shared_ptr<const ClassSums> find(std::int64_t number, const Make& make) {
    Member& member = member_[number];
    const std::lock_guard lock(member.mutex);
    if (!member.sums) member.sums = std::make_shared<const ClassSums>(make());
    std::shared_ptr<const ClassSums> sums = member.sums;
    if (++member.n_asked == n_trees_) member.sums.reset();
    return sums;
  }

 private:
  struct Member {
    std::mutex mutex;
    std::shared_ptr<const ClassSums> sums;
    std::size_t n_asked = 0;
  };

  std::size_t n_trees_;  // of each member
  std::vector<Member> member_;
};

}  // namespace lhtree
