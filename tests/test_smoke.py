"""A minute of a new user: both classifiers on a small table."""

import subprocess
import sys

from sklearn.datasets import load_wine

from lhtree import LHForestClassifier, LHTClassifier, check_forest


def test_both_classifiers_learn_wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    for model in (LHTClassifier(), LHForestClassifier(random_state=0)):
        model.fit(X, y)
        assert model.score(X, y) > 0.98
    check_forest(LHTClassifier().fit(X, y).forest_)


def test_submodules_load_when_first_used():
    program = (
        "import sys, lhtree\n"
        "names = {'dask', 'explain', 'export', 'plot', 'report'}\n"
        "assert names <= set(dir(lhtree))\n"
        "assert not any(f'lhtree.{name}' in sys.modules for name in names)\n"
        "assert lhtree.explain.explain_rows is sys.modules['lhtree.explain'].explain_rows\n"
        "assert not hasattr(lhtree, 'absent')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
