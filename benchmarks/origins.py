"""Where the paper's data sets come from, and how their files are read.

UCI, LIBSVM and OpenML publish them as delimited text, ARFF or LIBSVM files. Each becomes a
frame of features, ``target`` and, where the origin has a test part, ``split``.
"""

from __future__ import annotations

import bz2
import io
import zipfile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
UCI_ZIP = "https://archive.ics.uci.edu/static/public/"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"

_SEGMENTS = ("brickface", "sky", "foliage", "cement", "window", "path", "grass")


class Origin(NamedTuple):
    """Files of a data set: one, or the training part and the test part."""

    urls: tuple[str, ...]
    kind: str = "text"  # or "arff", "libsvm"
    sep: str = ","  # a regular expression
    skip: int = 0  # lines before the first row
    target: int = -1  # its column
    drop: tuple[int, ...] = ()  # columns that are no features
    labels: tuple[str, ...] = ()  # names of the classes 1, 2, ...
    members: tuple[str, ...] = ()  # files of an archive: how their names end
    encoding: str = "utf-8"
    decimal: str = "."
    high: int = 0  # undo a scaling of 0..high to [-1, 1]


_ACUTE = Origin((UCI + "acute/diagnosis.data",), sep=r"\t", encoding="utf-16", decimal=",")
_LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")

ORIGINS: dict[str, Origin] = {
    "protein": Origin((LIBSVM + "protein.bz2", LIBSVM + "protein.t.bz2"), "libsvm"),
    "satimage": Origin((LIBSVM + "satimage.scale", LIBSVM + "satimage.scale.t"), "libsvm"),
    "segment": Origin((UCI + "statlog/segment/segment.dat",), sep=r"\s+", labels=_SEGMENTS),
    "pendigits": Origin((UCI + "pendigits/pendigits.tra", UCI + "pendigits/pendigits.tes")),
    "connect4": Origin((LIBSVM + "connect-4",), "libsvm"),
    "mnist": Origin((LIBSVM + "mnist.bz2", LIBSVM + "mnist.t.bz2"), "libsvm"),
    "sensit": Origin(
        (LIBSVM + "vehicle/combined.bz2", LIBSVM + "vehicle/combined.t.bz2"), "libsvm"
    ),
    "letter": Origin(
        (LIBSVM + "letter.scale", LIBSVM + "letter.scale.t"), "libsvm", labels=_LETTERS, high=15
    ),
    "balance_scale": Origin((UCI + "balance-scale/balance-scale.data",), target=0),
    "banknote": Origin((UCI + "00267/data_banknote_authentication.txt",)),
    "blood_transfusion": Origin((UCI + "blood-transfusion/transfusion.data",), skip=1),
    "acute_inflammation_1": _ACUTE._replace(target=-2, drop=(-1,)),
    "acute_inflammation_2": _ACUTE._replace(drop=(-2,)),
    "car_evaluation": Origin((UCI + "car/car.data",)),
    "breast_cancer_wisconsin": Origin(
        (UCI + "breast-cancer-wisconsin/breast-cancer-wisconsin.data",), drop=(0,)
    ),
    "avila": Origin((UCI + "00459/avila.zip",), members=("avila-tr.txt", "avila-ts.txt")),
    "wine_red": Origin((UCI + "wine-quality/winequality-red.csv",), sep=";", skip=1),
    "wine_white": Origin((UCI + "wine-quality/winequality-white.csv",), sep=";", skip=1),
    "dry_bean": Origin((UCI_ZIP + "602/dry+bean+dataset.zip",), "arff", members=(".arff",)),
    "climate_crashes": Origin((UCI + "00252/pop_failures.dat",), sep=r"\s+", skip=1, drop=(0, 1)),
    "sonar": Origin((UCI + "undocumented/connectionist-bench/sonar/sonar.all-data",)),
    "optdigits": Origin((UCI + "optdigits/optdigits.tra", UCI + "optdigits/optdigits.tes")),
    "wine": Origin((UCI + "wine/wine.data",), target=0),
    "seeds": Origin((UCI + "00236/seeds_dataset.txt",), sep=r"\s+"),
    "wdbc": Origin((UCI + "breast-cancer-wisconsin/wdbc.data",), target=1, drop=(0,)),
    "rice": Origin((UCI_ZIP + "545/rice+cammeo+and+osmancik.zip",), "arff", members=(".arff",)),
    "spambase": Origin((UCI + "spambase/spambase.data",)),
    "eeg_eye_state": Origin((UCI + "00264/EEG%20Eye%20State.arff",), "arff"),
    "magic": Origin((UCI + "magic/magic04.data",)),
    "skin": Origin((UCI + "00229/Skin_NonSkin.txt",), sep=r"\s+"),
}


def name_files(origin: Origin) -> list[str]:
    """Return the file names of an origin, without what its address escapes."""
    return [unquote(url.rsplit("/", 1)[1]).replace(" ", "_") for url in origin.urls]


def _read_parts(origin: Origin, paths: list[Path]) -> list[bytes]:
    """Return the contents of the files, unpacked."""
    if origin.members:
        with zipfile.ZipFile(paths[0]) as archive:
            names = archive.namelist()
            found = [next((n for n in names if n.endswith(end)), None) for end in origin.members]
            if None in found:
                raise ValueError(f"{paths[0].name} has no file that ends in {origin.members}.")
            return [archive.read(name) for name in found if name]
    return [
        bz2.decompress(path.read_bytes()) if path.suffix == ".bz2" else path.read_bytes()
        for path in paths
    ]


def _parse_text(origin: Origin, content: bytes) -> Any:
    """Return one part as a frame whose last column is ``target``."""
    import pandas as pd

    text = content.decode(origin.encoding).lstrip("\ufeff")
    if origin.kind == "arff":
        lines = text.splitlines()
        start = next((i for i, line in enumerate(lines) if line.lower().startswith("@data")), None)
        if start is None:
            raise ValueError("The ARFF file has no line @data.")
        text = "\n".join(line for line in lines[start + 1 :] if not line.startswith("%"))
    frame = pd.read_csv(
        io.StringIO(text), sep=origin.sep, engine="python", header=None, skiprows=origin.skip,
        decimal=origin.decimal, na_values="?", skipinitialspace=True,
    )  # fmt: skip
    columns = list(frame.columns)
    target = frame[columns[origin.target]]
    unwanted = {columns[j] for j in (*origin.drop, origin.target)}
    frame = frame.drop(columns=list(unwanted))
    frame.columns = [f"x{j}" for j in range(frame.shape[1])]
    return frame.assign(target=target)


def _parse_libsvm(origin: Origin, content: bytes, n_columns: int) -> Any:
    import pandas as pd
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(io.BytesIO(content), n_features=n_columns, zero_based=False)
    values = X.toarray()
    if origin.high:
        values = np.rint((values + 1) * origin.high / 2)
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(n_columns)])
    return frame.assign(target=y.astype(int))


def parse(origin: Origin, paths: list[Path], n_columns: int) -> Any:
    """Return the files of a data set as one frame."""
    import pandas as pd

    parts = [
        _parse_libsvm(origin, content, n_columns)
        if origin.kind == "libsvm"
        else _parse_text(origin, content)
        for content in _read_parts(origin, paths)
    ]
    if len(parts) > 1:
        parts = [part.assign(split=s) for part, s in zip(parts, ("train", "test"), strict=True)]
    frame = pd.concat(parts, ignore_index=True)
    if origin.labels:
        frame["target"] = [origin.labels[int(label) - 1] for label in frame["target"]]
    return frame
