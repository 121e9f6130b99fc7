"""The values of a row as text."""

from __future__ import annotations

import numpy as np

from lhtree.explain.contributions import Explanation


def describe_values(explanation: Explanation, row: int) -> list[str]:
    """Return the value of each feature of an explained row as text.

    A number has five significant digits. Trees and forests see a category as one column per
    value: the text is the value whose column is on. Boosted trees see its code.
    """
    if explanation.table is None:
        raise ValueError("explanation has no table; describe it before by_feature.")
    value = explanation.table[row]
    texts = ["missing"] * len(explanation.feature_names)
    is_single = np.bincount(explanation.source, minlength=len(texts)) == 1
    for j, feature in enumerate(explanation.source):
        prefix = f"{explanation.feature_names[feature]}="
        name = explanation.column_names[j]
        if name.startswith(prefix):  # an indicator column reads feature=value
            if value[j] > 0:
                texts[feature] = name.removeprefix(prefix)
        elif is_single[feature] and not np.isnan(value[j]):
            names = explanation.codes[j] if explanation.codes else ()
            texts[feature] = names[int(value[j])] if names else f"{value[j]:.5g}"
    return texts
