"""Parameters: read once, checked, frozen, and called by one name."""

from collections import Counter
from dataclasses import FrozenInstanceError, fields

import pytest

from lhtree import LHForestClassifier, LHTClassifier
from lhtree.estimators.averaging.params import AveragingParams
from lhtree.estimators.params import (
    RENAMED,
    Params,
    count_columns,
    count_draws,
    count_min_samples,
)
from lhtree.training.plan import CONTRASTS, CRITERIA, Draw

FOREST_ONLY = sorted(set(LHForestClassifier().get_params()) - set(LHTClassifier().get_params()))


@pytest.mark.parametrize("module", ["lhtree", "lhtree.dask"])
@pytest.mark.parametrize("name", ["LHTClassifier", "LHForestClassifier"])
@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_old_names_of_parameters_raise_an_error_that_gives_the_new_one(module, name, old, new):
    classifier = getattr(pytest.importorskip(module), name)
    message = f"^'{old}' is now called '{new}'; use the new name.$"
    with pytest.raises(TypeError, match=message):
        classifier(**{old: 1})
    with pytest.raises(TypeError, match=message):
        classifier().set_params(**{old: 1})


def test_each_renamed_parameter_exists_by_its_new_name_only():
    assert RENAMED == {
        "threshold": "criterion", "axes": "axis_splits", "n_planes": "n_hyperplanes",
    }  # fmt: skip
    names = set(LHForestClassifier().get_params())
    assert set(RENAMED.values()) <= names
    assert not set(RENAMED) & names


@pytest.mark.parametrize("name", FOREST_ONLY)
def test_a_single_tree_has_no_attribute_for_a_parameter_of_forests(name, blobs):
    assert not hasattr(LHTClassifier, name)
    assert not hasattr(LHTClassifier().fit(*blobs), name)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        LHTClassifier(**{name: 1})


def test_forests_have_parameters_that_single_trees_lack():
    assert {"n_estimators", "max_samples", "bootstrap", "voting"} <= set(FOREST_ONLY)


ONCE = dict.fromkeys(LHForestClassifier().get_params(), 1)


class CountingReads(LHForestClassifier):
    """Count how often each parameter is read."""

    def __getattribute__(self, name):
        if name in ONCE:
            self.__dict__.setdefault("_n_reads", Counter()).update([name])
        return super().__getattribute__(name)

    def count_reads(self, action):
        """Return how often an action reads each parameter."""
        self._n_reads = Counter()
        action(self)
        return dict(self._n_reads)


def test_params_read_each_parameter_once_and_check_it():
    model = CountingReads(7, beta=0.5, random_state=3)
    for read in (Params.read, AveragingParams.read):
        assert model.count_reads(read) == ONCE
    assert Params.read(model) == Params.read(LHForestClassifier(7, beta=0.5, random_state=3))
    with pytest.raises(ValueError, match="beta must be a number from 0 to 1, got 2"):
        Params.read(model.set_params(beta=2))


@pytest.mark.parametrize(
    "model",
    [
        CountingReads(3, random_state=0),
        CountingReads("auto", max_estimators=20, random_state=0),
        CountingReads(20, calibration="oob", class_weight="balanced_subsample", verbose=1),
        CountingReads(20, calibration="oob", contrast="standardized", max_samples=0.5),
        CountingReads(2, preset="paper", random_state=0),
    ],
    ids=["plain", "auto", "calibrated", "other contrast", "paper"],
)
def test_a_fit_reads_each_parameter_once(model, blobs):
    assert model.count_reads(lambda model: model.fit(*blobs)) == ONCE


def test_params_are_frozen():
    params = Params.read(LHTClassifier())
    for field in fields(params):
        with pytest.raises(FrozenInstanceError):
            setattr(params, field.name, None)
    model = LHTClassifier(beta=0.25)
    params = Params.read(model)
    model.set_params(beta=0.75)
    assert params.beta == 0.25


def test_a_single_tree_is_a_forest_of_one_estimator_on_all_rows():
    params = Params.read(LHTClassifier())
    assert (params.n_estimators, params.is_forest) == (1, False)
    assert params.resolve_draw(50) == Draw(50, 50, bootstrap=False)
    assert not params.resolve_draw(50).has_out_of_bag
    assert Params.read(LHForestClassifier(1)).is_forest


@pytest.mark.parametrize("preset", ["accurate", "paper"])
def test_a_preset_stands_for_auto(preset):
    params = Params.read(LHForestClassifier(preset=preset))
    is_paper = preset == "paper"
    assert params.contrast == ("mean" if is_paper else "fisher")
    assert params.criterion == ("purity" if is_paper else "gini")
    assert params.axis_splits is not is_paper
    assert params.n_hyperplanes == (1 if is_paper else 3)
    assert Params.read(LHForestClassifier(preset=preset, contrast="standardized")).contrast == (
        "standardized"
    )


def test_params_resolve_to_the_plan_of_the_core():
    model = LHForestClassifier(
        criterion="gini", contrast="standardized", axis_splits=True, n_hyperplanes=5, beta=0.5,
        max_features=0.5, max_features_per_tree=3, max_leaf_nodes=4, min_samples_split=0.1,
        min_samples_leaf=1, bootstrap=True,
    )  # fmt: skip
    params = Params.read(model)
    plan = params.resolve(
        params.resolve_draw(80), n_columns=10, n_weighted=80.0, n_classes=3, seed=9
    )
    assert CRITERIA[plan.criterion] == "gini"
    assert CONTRASTS[plan.contrast] == "standardized"
    assert (plan.axis_splits, plan.n_hyperplanes) == (True, 5)
    assert (plan.max_features, plan.max_features_per_tree) == (5, 3)
    assert (plan.max_leaf_nodes, plan.max_depth) == (4, 3)  # a path has fewer splits than leaves
    assert (plan.min_samples_split, plan.min_samples_leaf) == (8, 0)
    assert (plan.positive_class, plan.n_classes, plan.seed) == ((0, 1, 2), 3, 9)
    assert (plan.n_draws, plan.bootstrap) == (64, True)


def test_fractions_of_rows_and_columns_become_numbers():
    assert count_draws(0.7, 5, bootstrap=False) == 4  # 3.5 rounds to even
    assert count_draws(0.1, 4, bootstrap=False) == 1  # at least one
    assert count_min_samples(0.15, 50, least=2) == 8  # a split needs at least 7.5 rows
    assert count_min_samples(0.01, 50, least=2) == 2
    assert count_columns("max_features", 0.5, 7) == 3
    assert [count_columns("max_features", "auto", n) for n in (1, 9, 10**6)] == [1, 6, 128]


@pytest.mark.parametrize("value", ["equal", 3, [1, 2], "balanced_subsample"])
def test_class_weight_is_checked_before_the_table_is_read(value):
    with pytest.raises(ValueError, match="class_weight must be None, a dict"):
        Params.read(LHTClassifier(class_weight=value))
