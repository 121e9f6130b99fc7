"""Functions refuse the models that lack what they show, in one sentence with a remedy."""

import importlib
import inspect

import numpy as np
import pytest
from sklearn.datasets import load_iris

from lhtree import (
    LHBoostClassifier,
    LHBoostRegressor,
    LHForestClassifier,
    LHForestRegressor,
)
from lhtree.estimators.lookup import check_model

MODULES = ["lhtree.explain", "lhtree.plot", "lhtree.report", "lhtree.export"]
FUNCTIONS = [
    (module, name)
    for module in MODULES
    for name in importlib.import_module(module).__all__
    if next(iter(inspect.signature(getattr(importlib.import_module(module), name)).parameters))
    == "model"
]
OF_FORESTS = {"split_view", "plot_split"}
OF_CLASSIFIERS = OF_FORESTS | {"class_importances", "nearest_counterfactual"}
REFUSED = [
    (*function, kind)
    for kind, names in (
        (LHBoostClassifier, OF_FORESTS),
        (LHBoostRegressor, OF_CLASSIFIERS),
        (LHForestRegressor, OF_CLASSIFIERS),
    )
    for function in FUNCTIONS
    if function[1] in names
]
SENTENCE = (
    r"^{} is for (an LHTClassifier or LHForestClassifier|classifiers), and model is an {}; "
    r"[a-z].+[a-z]\.$"
)


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True)
    return X[:100], y[:100]


def test_there_are_functions_of_every_module():
    assert {module for module, _ in FUNCTIONS} == set(MODULES)
    assert len(FUNCTIONS) >= 15


@pytest.mark.parametrize(("module", "name", "kind"), REFUSED)
def test_boosted_models_are_refused_where_they_lack_what_is_asked_for(
    module, name, kind, flowers, tmp_path
):
    X, y = flowers
    model = kind(n_estimators=2).fit(X, y)
    function = getattr(importlib.import_module(module), name)
    known = {
        "X": X,
        "y": y,
        "x": X[0],
        "row": X[0],
        "path": tmp_path / "out",
        "tree": 0,
        "node": 0,
    }
    known |= {"desired_class": 1}
    needed = [
        parameter.name
        for parameter in list(inspect.signature(function).parameters.values())[1:]
        if parameter.default is parameter.empty
    ]
    with pytest.raises(TypeError, match=SENTENCE.format(name, kind.__name__)):
        function(model, *(known[each] for each in needed))


def test_forests_are_accepted_and_other_objects_refused(flowers):
    check_model(LHForestClassifier(2).fit(*flowers))
    check_model(LHForestRegressor(2).fit(*flowers))
    with pytest.raises(TypeError, match="got ndarray; of a pipeline, pass the last step"):
        check_model(np.zeros(3))
