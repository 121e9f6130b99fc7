"""What the commands need of a model: its file, its columns and its scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    log_loss,
    mean_absolute_error,
    mean_pinball_loss,
    mean_squared_error,
    r2_score,
)

import lhtree
from lhtree.cli.screen import count
from lhtree.cli.tables import (
    Format,
    Source,
    TableError,
    check_columns,
    iterate_frames,
    iterate_libsvm,
    list_few,
    read_frame,
    read_libsvm,
)
from lhtree.model.link import is_exact, read_link

ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file of lhtree fit or lhtree.save.")
]


def load_model(path: Path) -> Any:
    """Read a model."""
    return lhtree.load(path)


def list_columns(model: Any) -> list[str] | None:
    """Return the names of the columns that a model reads; None if they have no names."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def list_text(model: Any) -> list[str]:
    """Return the names of the columns whose categories are text; other categories are numbers."""
    names = list_columns(model) or []
    return [
        names[category.feature]
        for category in model.columns_.categories
        if names and any(isinstance(value, str) for value in category.values)
    ]


def iterate_rows(model: Any, source: Source) -> Iterator[Any]:
    """Read the columns that a model needs from a table, block by block."""
    if source.format == Format.libsvm:
        yield from iterate_libsvm(source, model.n_features_in_)
        return
    names = list_columns(model)
    if names is None:
        yield _read_unnamed(model, source)
        return
    text = list_text(model)
    numbers = [name for name in names if name not in text]
    for frame in iterate_frames(source, numbers, text):
        yield frame[names]


def _read_unnamed(model: Any, source: Source) -> Any:
    """Read a table for a model that was trained on an array: columns are taken by position."""
    frame = read_frame(source)
    if frame.shape[1] != model.n_features_in_:
        raise TableError(
            f"{source} has {frame.shape[1]} columns, but the model was trained on "
            f"{model.n_features_in_} columns without names; give exactly these, in order."
        )
    return frame.to_numpy(dtype=np.float64)


def read_labelled(model: Any, source: Source, target: str | None) -> tuple[Any, Any]:
    """Read rows and their targets for a fitted model."""
    if source.format == Format.libsvm:
        X, y = read_libsvm(source, model.n_features_in_)
    else:
        X, y = _read_labelled_frame(model, source, check_target(target))
    check_rows(source, y)
    return X, y if is_classifier(model) else read_numbers(source, target, y)


def _read_labelled_frame(model: Any, source: Source, target: str) -> tuple[Any, Any]:
    names, text = list_columns(model), list_text(model)
    if names and target in names:
        raise typer.BadParameter(
            f"--target {target} is one of the columns that the model reads; "
            "name the column of the targets."
        )
    if is_classifier(model) and any(isinstance(label, str) for label in model.classes_):
        text = [*text, target]  # "true" and "007" stay what they are
    X, y = split_target(source, read_frame(source, text), target)
    if names is None:
        return X.to_numpy(dtype=np.float64), y
    check_columns(source, list(X.columns), names)
    return X[names], y


def check_rows(source: Source, y: Any) -> None:
    """Require at least one row."""
    if len(y) == 0:
        raise TableError(f"{source} has no rows.")


def read_numbers(source: Source, target: str | None, y: Any) -> NDArray[np.float64]:
    """Return targets as numbers; refuse any that are not."""
    name = "labels" if target is None else f"column {target!r}"
    try:
        numbers = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TableError(
            f"{source} has values in its {name} that are not numbers, but the model predicts "
            "numbers; name a column of numbers, or predict classes."
        ) from error
    if not np.isfinite(numbers).all():
        raise TableError(f"{source} has infinite values in its {name}; remove these rows.")
    return numbers


def check_target(target: str | None) -> str:
    """Require the name of the column of targets."""
    if target is None:
        raise typer.BadParameter(
            "give --target, the name of the column of the class labels or numbers."
        )
    return target


def split_target(
    source: Source, frame: Any, target: str, dropped: Sequence[str] = ()
) -> tuple[Any, Any]:
    """Return the features and the labels of a table."""
    known = list(frame.columns)
    for name in (target, *dropped):
        if name not in known:
            names = list_few(get_close_matches(name, known) or known)
            raise typer.BadParameter(f"{source} has no column {name!r}; it has {names}.")
    y = frame[target]
    if n_missing := int(y.isna().sum()):
        rows = count(n_missing, "row")
        raise TableError(f"{source} has no label in {rows}; remove or label them.")
    return frame.drop(columns=[target, *dropped]), y.to_numpy()


def encode_labels(model: Any, y: Any) -> NDArray[np.int64]:
    """Return the index of each label in the classes of a model, -1 if it is not one of them.

    The type of a label does not matter: a table may write the class 1 as 1.0 or as text.
    """
    classes = model.classes_.tolist()
    index = {str(label): k for k, label in enumerate(classes)}
    index |= {label: k for k, label in enumerate(classes)}  # 1, 1.0 and True are one key
    position, labels = pd.factorize(np.asarray(y))
    encoded = [
        next((index[spelling] for spelling in _list_spellings(label) if spelling in index), -1)
        for label in labels.tolist()
    ]
    result: NDArray[np.int64] = np.array(encoded, dtype=np.int64)[position]
    return result


def _list_spellings(label: Any) -> Iterator[Any]:
    """Yield what a label may be as a class, the most exact first."""
    yield label
    yield str(label)
    try:
        number = float(label)
    except ValueError:
        return
    yield number
    if number.is_integer():
        yield str(int(number))


def match_labels(model: Any, y: Any) -> Any:
    """Return labels as classes of a model, or as they are if some are not its classes."""
    if not is_classifier(model):
        return y
    y_encoded = encode_labels(model, y)
    return y if (y_encoded < 0).any() else model.classes_[y_encoded]


def score(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """Return how well a model predicts the labels, or the numbers, of rows."""
    if not is_classifier(model):
        levels = list_levels(model)
        return (
            _score_levels(model, levels, X, y) if levels else _score_numbers(model.predict(X), y)
        )
    y_encoded, classes = encode_labels(model, y), np.arange(len(model.classes_))
    predicted = encode_labels(model, model.predict(X))
    is_known = bool((y_encoded >= 0).all())
    loss = None
    if is_known and len(classes) > 1:
        loss = float(log_loss(y_encoded, model.predict_proba(X), labels=classes))
    balanced = float(balanced_accuracy_score(y_encoded, predicted)) if is_known else None
    return {
        "accuracy": float(accuracy_score(y_encoded, predicted)),
        "balanced_accuracy": balanced,
        "log_loss": loss,
        "n_rows": len(y),
    }


def list_levels(model: Any) -> tuple[float, ...]:
    """Return the levels of a model of several quantiles, each of which has a column."""
    return read_link(model).levels if is_exact(model) else ()


def _score_levels(model: Any, levels: tuple[float, ...], X: Any, y: Any) -> dict[str, Any]:
    """Return the loss of each quantile, and the share of rows that are not above it."""
    columns = zip(levels, model.predict(X).T, strict=True)
    quantiles = [
        {
            "level": level,
            "pinball_loss": float(mean_pinball_loss(y, predicted, alpha=level)),
            "coverage": float(np.mean(y <= predicted)),
        }
        for level, predicted in columns
    ]
    return {"quantiles": quantiles, "n_rows": len(y)}


def _score_numbers(predicted: Any, y: Any) -> dict[str, Any]:
    return {
        "r2": float(r2_score(y, predicted)) if len(y) > 1 else None,
        "rmse": float(np.sqrt(mean_squared_error(y, predicted))),
        "mae": float(mean_absolute_error(y, predicted)),
        "n_rows": len(y),
    }
