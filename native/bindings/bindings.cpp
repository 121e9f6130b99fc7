// The core as Python sees it: one module of free functions on arrays.
#include <cstdint>

#include "threads.hpp"

namespace lhtree {

Poll make_poll(nb::handle progress) {
  return [progress, last = std::int64_t{-1}](std::int64_t n_done) mutable {
    nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none() && n_done != last) progress(last = n_done);
  };
}

}  // namespace lhtree

NB_MODULE(_core, m) {
  m.doc() = "Native core of lhtree: free functions on arrays.";
  lhtree::bind_table(m);
  lhtree::bind_columns(m);
  lhtree::bind_boosting(m);
  lhtree::bind_forest(m);
  lhtree::bind_ensemble(m);
  lhtree::bind_grow(m);
  lhtree::bind_predict(m);
  lhtree::bind_partitions(m);
  lhtree::bind_decisions(m);
}
