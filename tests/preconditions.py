"""Preconditions of property tests that must hold often enough to prove anything."""

from hypothesis import assume


class Precondition:
    """A condition that examples of a property must meet, and how often they did.

    An example that does not meet it is drawn anew. A generator that hardly ever meets it
    would leave the property untested, so `demand` is called after the last example.
    """

    def __init__(self):
        self.n_tried = self.n_held = 0

    def assume(self, holds):
        """Skip the example unless the condition holds; count both."""
        self.n_tried += 1
        self.n_held += bool(holds)
        assume(holds)

    def demand(self, *, n_held, fraction):
        """Fail unless the condition held so often, and in such a fraction of the examples."""
        counts = f"held in {self.n_held} of {self.n_tried} examples"
        assert self.n_held >= n_held, counts
        assert self.n_held >= fraction * self.n_tried, counts
