// Work without the interpreter's lock, that Python can watch and stop.
#pragma once

#include "numpy.hpp"
#include "old/parallel.hpp"

namespace lhtree {

/// Lets Python handle signals (Ctrl-C) and report progress while threads work.
Poll make_poll(nb::handle progress);

/// Run a pass without the interpreter's lock.
template <class Pass>
auto run_pass(const Pass& pass) {
  nb::gil_scoped_release unlocked;
  const StandardArithmetic standard;
  return pass();
}

}  // namespace lhtree
