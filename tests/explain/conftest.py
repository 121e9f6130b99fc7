"""The table that most explanations are tested on."""

import pytest
from sklearn.datasets import load_wine


@pytest.fixture(scope="session")
def wine():
    """Return the wines as a frame, and their classes."""
    return load_wine(return_X_y=True, as_frame=True)
