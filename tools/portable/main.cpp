// Boosts made tables without Python and prints a digest of each model: the same on every machine.
#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

#include "base/columns.hpp"
#include "grow/boosting.hpp"
#include "grow/means.hpp"
#include "grow/quantiles.hpp"
#include "grow/softmax.hpp"

namespace {

using namespace lhtree;

/// FNV-1a over the bytes of integers, whatever their order in memory.
class Digest {
 public:
  template <class T>
  void add(const std::vector<T>& values) {
    for (const T value : values) {
      auto word = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
      for (int k = 0; k < 8; ++k, word >>= 8) state_ = (state_ ^ (word & 0xFF)) * 0x100000001B3;
    }
  }
  std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_ = 0xCBF29CE484222325;
};

/// What `boost` does with a number from -2 to 2 to make it a target.
enum class Target { number, count, label };

template <class Loss>
std::uint64_t boost(const Loss& loss, Target kind, std::int64_t n_outputs, std::uint64_t seed,
                    bool has_gaps) {
  constexpr std::int64_t n = 3000, d = 8;
  const auto draw = [&](std::int64_t k) {
    return static_cast<double>(hash64(seed, static_cast<std::uint64_t>(k)) >> 11) * 0x1p-52 - 1.0;
  };
  std::vector<double> X(n * d);
  for (std::int64_t k = 0; k < n * d; ++k)
    X[k] = has_gaps && hash64(seed + 1, static_cast<std::uint64_t>(k)) % 9 == 0
               ? std::numeric_limits<double>::quiet_NaN()
               : draw(k);
  std::vector<std::int32_t> y(n);
  std::vector<std::int64_t> score(n * n_outputs, kind == Target::count ? 15 << 24 : 0);
  for (std::int64_t i = 0; i < n; ++i) {
    const double target = draw(i * d) * draw(i * d + 1) + draw(i * d + 2);
    if (kind == Target::number) y[i] = static_cast<std::int32_t>(target * (1 << 24));
    if (kind == Target::count) y[i] = static_cast<std::int32_t>((target + 2.0) * (1 << 22)) + 1;
    if (kind == Target::label)
      y[i] = n_outputs == 1
                 ? target > 0.0
                 : static_cast<std::int32_t>((target + 2.0) * 0.25 * n_outputs) % n_outputs;
  }
  std::vector<base::Column> columns(d);
  const Poll poll = [](std::int64_t) {};
  base::TableEncoder<double> encoder(base::Values<double>::by_rows(X.data(), n, d), true);
  std::vector<std::uint8_t> held_out(n);
  for (std::int64_t i = 0; i < n; ++i) held_out[i] = i % 10 == 0;
  encoder.learn(columns, nullptr, held_out.data(), base::most_bins, 1, poll);
  const base::EncodedRows encoded = encoder.take();
  std::vector<base::ColumnInfo> info;
  for (const base::Column& each : columns)
    info.push_back(
        {each.n_bins(), false, each.has_gaps, each.fill, base::ColumnEncoder(each).bin(0.0)});
  const base::Layout layout(info);
  const base::DenseTable table{layout, n, encoded.bin.data(), encoded.z.data()};
  const base::DenseTable none{layout, 0, nullptr, nullptr};
  grow::BoostingPlan plan;
  plan.n_rounds = 20;
  plan.subsample = 0.8;
  plan.l2_regularization = 1.0;
  plan.hyperplanes = {3, 5, 0.3, 0, 1.0};
  const StopFlag stop{false};
  base::Team team(2, stop);
  const grow::Rows rows{n, n_outputs, y.data(), nullptr, held_out.data(), score.data()};
  const grow::Rows others{0, n_outputs};
  grow::Booster<Loss, stats::PackedRow, base::DenseTable> booster(loss, columns, table, rows, none,
                                                                  others, plan, team, stop);
  const model::Ensemble trees = booster.run().trees;
  Digest digest;
  digest.add(score);
  digest.add(trees.left);
  digest.add(trees.column);
  digest.add(trees.value);
  digest.add(trees.coefficient);
  digest.add(trees.fill);
  digest.add(trees.cut);
  return digest.state();
}

}  // namespace

int main() {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const bool has_gaps = seed % 2 == 1;
    const std::uint64_t digest[] = {
        boost(grow::SquaredLoss{}, Target::number, 1, seed, has_gaps),
        boost(grow::LogisticLoss{}, Target::label, 1, seed, has_gaps),
        boost(grow::SoftmaxLoss(5), Target::label, 5, seed, has_gaps),
        boost(grow::PoissonLoss{}, Target::count, 1, seed, has_gaps),
        boost(grow::GammaLoss{}, Target::count, 1, seed, has_gaps),
        boost(grow::QuantileLoss({0.1, 0.5, 0.9}), Target::number, 3, seed, has_gaps)};
    for (const std::uint64_t each : digest)
      std::printf("%016llx ", static_cast<unsigned long long>(each));
    std::printf("\n");
  }
}
