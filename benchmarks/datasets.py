"""The 30 data sets of the paper: shape, class counts, checksum and public origin."""

from __future__ import annotations

from typing import NamedTuple


class DataSet(NamedTuple):
    """A data set of the paper.

    `counts` are the rows of each class, classes in the order of their sorted labels;
    `checksum` is that of :func:`benchmarks.data.compute_checksum`. Both are empty for the
    two data sets that could not be had.
    """

    name: str
    n: int
    m: int
    k: int
    n_train: int | None  # rows of the predefined training part
    counts: tuple[int, ...]
    checksum: str


_ALL = (
    DataSet("protein", 24387, 357, 3, 17766, (), ""),
    DataSet("satimage", 6435, 36, 6, 4435, (1533, 703, 1358, 626, 707, 1508), "f35d4e13f61a6cf7"),
    DataSet("segment", 2310, 19, 7, None, (330, 330, 330, 330, 330, 330, 330), "cf08372438bfbc35"),
    DataSet(
        "pendigits",
        10992,
        16,
        10,
        7494,
        (1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055),
        "0ba90e50bafb91de",
    ),
    DataSet("connect4", 67557, 126, 3, None, (16635, 6449, 44473), "3321a5121eef7d89"),
    DataSet(
        "mnist",
        70000,
        784,
        10,
        60000,
        (6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958),
        "bfb62fd2ce973edb",
    ),
    DataSet("sensit", 98528, 100, 3, 78823, (), ""),
    DataSet(
        "letter",
        20000,
        16,
        26,
        15000,
        (
            789,
            766,
            736,
            805,
            768,
            775,
            773,
            734,
            755,
            747,
            739,
            761,
            792,
            783,
            753,
            803,
            783,
            758,
            748,
            796,
            813,
            764,
            752,
            787,
            786,
            734,
        ),
        "60bb10dd0fb15c3f",
    ),
    DataSet("balance_scale", 625, 4, 3, None, (49, 288, 288), "dbee76b56d77afae"),
    DataSet("banknote", 1372, 4, 2, None, (762, 610), "b623184acad0ac9e"),
    DataSet("blood_transfusion", 748, 4, 2, None, (570, 178), "74289957db7c7ac1"),
    DataSet("acute_inflammation_1", 120, 6, 2, None, (61, 59), "2f3a510c76e700ab"),
    DataSet("acute_inflammation_2", 120, 6, 2, None, (70, 50), "927b5302d6ae7369"),
    DataSet("car_evaluation", 1728, 6, 4, None, (384, 69, 1210, 65), "606abb1af57bb989"),
    DataSet("breast_cancer_wisconsin", 699, 9, 2, None, (458, 241), "e6f966a4ed6fd521"),
    DataSet(
        "avila",
        20867,
        10,
        12,
        10430,
        (8572, 10, 206, 705, 2190, 3923, 893, 1039, 1663, 89, 1044, 533),
        "ae6094fcb0f33928",
    ),
    DataSet("wine_red", 1599, 11, 6, None, (10, 53, 681, 638, 199, 18), "e084837c135ee6c9"),
    DataSet(
        "wine_white", 4898, 11, 7, None, (20, 163, 1457, 2198, 880, 175, 5), "49d322fc93cbf9e7"
    ),
    DataSet(
        "dry_bean",
        13611,
        16,
        7,
        None,
        (1322, 522, 1630, 3546, 1928, 2027, 2636),
        "e133d0fd05bf37fd",
    ),
    DataSet("climate_crashes", 540, 18, 2, None, (46, 494), "89147e653a4c0822"),
    DataSet("sonar", 208, 60, 2, None, (111, 97), "1ce972d22068b101"),
    DataSet(
        "optdigits",
        5620,
        64,
        10,
        3823,
        (554, 571, 557, 572, 568, 558, 558, 566, 554, 562),
        "1dffb389f6096096",
    ),
    DataSet("wine", 178, 13, 3, None, (59, 71, 48), "6ebbd2a7f523f1da"),
    DataSet("seeds", 210, 7, 3, None, (70, 70, 70), "f2f41c1532e38fa1"),
    DataSet("wdbc", 569, 30, 2, None, (357, 212), "b24aaa01a12ddf42"),
    DataSet("rice", 3810, 7, 2, None, (1630, 2180), "0d6c5c30d5e96aab"),
    DataSet("spambase", 4601, 57, 2, None, (2788, 1813), "7762976e99b8abe6"),
    DataSet("eeg_eye_state", 14980, 14, 2, None, (8257, 6723), "9f59cdaaaac13b9e"),
    DataSet("magic", 19020, 10, 2, None, (12332, 6688), "7cee194efcdea244"),
    DataSet("skin", 245057, 3, 2, None, (50859, 194198), "f2cea11201414841"),
)
# Not of the paper: the test part of optdigits, which scikit-learn ships.
_DIGITS = DataSet(
    "digits",
    1797,
    64,
    10,
    None,
    (178, 182, 177, 183, 181, 182, 181, 179, 174, 180),
    "c07c346e766eeb67",
)

DATASETS: dict[str, DataSet] = {dataset.name: dataset for dataset in _ALL}
ALL: dict[str, DataSet] = {**DATASETS, _DIGITS.name: _DIGITS}
