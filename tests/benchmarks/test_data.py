"""The data sets of the benchmarks: reading, checking and downloading them."""

import bz2
import http.server
import io
import socket
import threading
import zipfile
from functools import partial

import numpy as np
import pandas as pd
import pytest

from benchmarks import data, models
from benchmarks.data import ALL, PAPER, Absent, fetch, name_files, parse
from benchmarks.kinds import comparison
from benchmarks.report import comparison as page

CONTENT = bytes(range(256)) * 2000


class Handler(http.server.BaseHTTPRequestHandler):
    """Responds by the first part of the path; notes requests."""

    def __init__(self, files, log, *args):
        self.files, self.log = files, log
        super().__init__(*args)

    def log_message(self, *args):
        """Print nothing."""

    def do_GET(self):
        """Send a file: whole, cut off, or not at all."""
        _, manner, name = self.path.split("/", 2)
        self.log.append(manner)
        content = self.files.get(name)
        if manner == "missing" or content is None:
            self.send_error(404)
            return
        if manner == "broken":
            self.send_error(503)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        is_cut = manner == "never" or (manner == "cut" and len(self.log) == 1)
        self.wfile.write(content[: len(content) // 2] if is_cut else content)


@pytest.fixture
def server():
    files, log = {}, []
    handler = partial(Handler, files, log)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", files, log
        running.shutdown()
        thread.join()


def list_files(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(("manner", "n_requests"), [("good", 1), ("cut", 2)])
def test_a_download_is_whole_and_tried_again_if_it_broke_off(server, tmp_path, manner, n_requests):
    address, files, log = server
    files["table.data"] = CONTENT
    fetch(f"{address}/{manner}/table.data", tmp_path / "t")
    assert (tmp_path / "t").read_bytes() == CONTENT
    assert list_files(tmp_path) == ["t"]
    assert len(log) == n_requests


@pytest.mark.parametrize(
    ("manner", "message"),
    [
        ("never", "bytes came"),
        ("broken", "HTTP Error 503"),
        ("missing", "HTTP Error 404"),
    ],
)
def test_a_download_that_fails_says_why_and_leaves_nothing(server, tmp_path, manner, message):
    address, files, _ = server
    files["table.data"] = CONTENT
    with pytest.raises(Absent, match=message):
        fetch(f"{address}/{manner}/table.data", tmp_path / "t")
    assert list_files(tmp_path) == []


def test_a_refused_connection_is_told_and_leaves_nothing(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Absent, match="refused"):
        fetch(f"http://127.0.0.1:{port}/t", tmp_path / "t")
    assert list_files(tmp_path) == []


def write_wine(separator=","):
    rows = data.make_rows("wine")
    table = np.column_stack([rows.y + 1, rows.X])
    return "\n".join(separator.join(map(repr, row)) for row in table.tolist()).encode()


def test_a_data_set_is_fetched_checked_and_kept(server, tmp_path, monkeypatch):
    monkeypatch.setenv("LHTREE_CACHE", str(tmp_path))
    monkeypatch.setenv("LHTREE_DATA", str(tmp_path / "absent"))
    address, files, log = server
    files["wine.data"] = write_wine()
    origin = ALL["wine"].origin._replace(urls=(f"{address}/cut/wine.data",))
    data.download("wine", origin)
    assert list_files(tmp_path) == ["wine.parquet"]
    assert len(log) == 2
    assert data.compute_checksum(data.read_rows("wine")) == PAPER["wine"].checksum


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.replace(b"14.23", b"14.24"), "fail its checksum"),
        (lambda text: text[: len(text) // 2], "instead of"),
        (lambda text: b"<html>moved</html>", "not what was sent"),
        (lambda text: b"", "not what was sent"),
    ],
)
def test_a_corrupted_data_set_is_refused_and_leaves_nothing(
    server, tmp_path, monkeypatch, spoil, message
):
    monkeypatch.setenv("LHTREE_CACHE", str(tmp_path))
    address, files, _ = server
    files["wine.data"] = spoil(write_wine())
    origin = ALL["wine"].origin._replace(urls=(f"{address}/good/wine.data",))
    with pytest.raises(data.Absent, match=message):
        data.download("wine", origin)
    assert list_files(tmp_path) == []


def test_an_absent_data_set_is_told_in_one_sentence(server, tmp_path, monkeypatch):
    monkeypatch.setenv("LHTREE_CACHE", str(tmp_path))
    monkeypatch.setenv("LHTREE_DATA", str(tmp_path))
    address, _, _ = server
    origin = ALL["protein"].origin._replace(urls=(f"{address}/missing/a", f"{address}/b/b"))
    monkeypatch.setitem(ALL, "protein", ALL["protein"]._replace(origin=origin))
    with pytest.raises(data.Absent, match=r"protein: data not available.* HTTP Error 404"):
        data.ensure("protein")
    with pytest.raises(data.Absent, match="set LHTREE_DATA to a folder that holds protein"):
        data.ensure("protein", may_download=False)


def write_libsvm(X, y):
    lines = (
        f"{label} " + " ".join(f"{j + 1}:{value:g}" for j, value in enumerate(row) if value)
        for label, row in zip(y, X, strict=True)
    )
    return "\n".join(lines).encode()


@pytest.mark.parametrize(("name", "labels"), [("protein", [0, 1, 2]), ("sensit", [1, 2, 3])])
def test_libsvm_files_of_protein_and_sensit_are_read(tmp_path, name, labels):
    random = np.random.default_rng(0)
    origin = ALL[name].origin
    assert origin.kind == "libsvm"
    X = np.round(random.random((9, ALL[name].n_columns)), 2) * (
        random.random((9, ALL[name].n_columns)) < 0.3
    )
    y = np.tile(labels, 3)
    paths = [tmp_path / file for file in name_files(origin)]
    assert [path.suffix for path in paths] == [".bz2", ".bz2"]
    paths[0].write_bytes(bz2.compress(write_libsvm(X[:6], y[:6])))
    paths[1].write_bytes(bz2.compress(write_libsvm(X[6:], y[6:])))
    rows = data.encode_frame(parse(origin, paths, ALL[name].n_columns))
    np.testing.assert_array_equal(rows.X, X)
    np.testing.assert_array_equal(rows.y, np.tile([0, 1, 2], 3))
    np.testing.assert_array_equal(rows.is_train, [True] * 6 + [False] * 3)


def zip_texts(**texts):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in texts.items():
            archive.writestr(f"folder/{name}", text)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "X", "y"),
    [
        ("segment", b"1 2.5 3\n4 5 1\n", [[1, 2.5], [4, 5]], [1, 0]),
        ("letter", b"2 1:-1 2:1\n1 1:0.2\n", [[0, 15], [9, 8]], [1, 0]),
        (
            "acute_inflammation_1",
            "37,5\tno\tyes\tno\n40\tyes\tno\tyes\n".encode("utf-16"),
            [[37.5, 0], [40, 1]],
            [1, 0],
        ),
        ("breast_cancer_wisconsin", b"17,5,?,2\n18,3,4,4\n", [[5, np.nan], [3, 4]], [0, 1]),
        ("eeg_eye_state", b"@relation x\n@DATA\n1.5,2,1\n3,4,0\n", [[1.5, 2], [3, 4]], [1, 0]),
        ("rice", zip_texts(**{"r.arff": "@data\n1,2,b\n3,4,a\n"}), [[1, 2], [3, 4]], [1, 0]),
        ("wine_red", b'"a";"quality"\n7.4;5\n8;3\n', [[7.4], [8]], [1, 0]),
        ("wdbc", b"842,M,1,2\n843,B,3,4\n", [[1, 2], [3, 4]], [1, 0]),
        ("car_evaluation", b"vhigh,5more,acc\nlow,2,a\n", [[3, 3], [0, 0]], [1, 0]),
    ],
)
def test_files_of_each_kind_are_read(tmp_path, name, content, X, y):
    origin = ALL[name].origin
    path = tmp_path / name_files(origin)[0]
    path.write_bytes(content)
    n_columns = len(X[0])
    one = origin._replace(urls=origin.urls[:1])
    rows = data.encode_frame(parse(one, [path], n_columns))
    np.testing.assert_array_equal(rows.X, X)
    np.testing.assert_array_equal(rows.y, y)


def test_a_zip_of_two_parts_has_a_split(tmp_path):
    origin = ALL["avila"].origin
    path = tmp_path / "avila.zip"
    path.write_bytes(zip_texts(**{"avila-tr.txt": "1,2,A\n3,4,B\n", "avila-ts.txt": "5,6,A\n"}))
    rows = data.encode_frame(parse(origin, [path], 2))
    np.testing.assert_array_equal(rows.is_train, [True, True, False])


def test_every_data_set_of_the_paper_has_an_origin_and_settings():
    assert len(PAPER) == 30
    assert set(models.read_paper_accuracy("LHT")) == set(PAPER)
    for name, dataset in PAPER.items():
        assert len(dataset.origin.urls) == (2 if dataset.n_train and name != "avila" else 1)
        assert models.read_paper_forest(name)["n_estimators"] >= 1


@pytest.mark.parametrize("name", ["satimage", "car_evaluation", "breast_cancer_wisconsin"])
def test_stored_data_sets_are_what_they_should_be(load_table, name):
    load_table(name)  # skips where LHTREE_DATA is not set
    rows = data.read_rows(name)
    assert rows.X.shape == (PAPER[name].n_rows, PAPER[name].n_columns)


def test_missing_values_become_the_median_of_the_training_rows():
    X = np.arange(40.0).reshape(20, 2)
    X[3, 0] = X[12, 1] = np.nan
    is_train = np.arange(20) < 10
    table = data.split_rows(data.Rows(X, np.arange(20) % 2, is_train), 0)
    assert table.X[3, 0] == np.nanmedian(X[:10, 0])
    assert table.X_test[2, 1] == np.median(X[:10, 1])


def test_rows_that_are_not_those_of_the_data_set_are_refused():
    rows = data.make_rows("wine")
    wine = PAPER["wine"]
    data.check_rows(wine, rows)
    with pytest.raises(ValueError, match="fail its checksum"):
        data.check_rows(wine, rows._replace(X=rows.X + 1e-9))
    with pytest.raises(ValueError, match="fail its checksum"):
        data.check_rows(wine, rows._replace(y=np.where(np.arange(178) == 0, 1, rows.y)))
    with pytest.raises(ValueError, match="rows, columns and classes"):
        data.check_rows(wine, data.Rows(rows.X[1:], rows.y[1:], None))


def test_the_checksum_does_not_depend_on_the_order_of_rows():
    rows = data.make_rows("wine")
    order = np.random.default_rng(0).permutation(len(rows.y))
    shuffled = data.Rows(rows.X[order], rows.y[order], None)
    assert data.compute_checksum(shuffled) == data.compute_checksum(rows)


def test_categories_without_a_known_order_are_refused():
    frame = pd.DataFrame({"a": ["red", "green"], "target": [0, 1]})
    with pytest.raises(ValueError, match="No order is known for the categories"):
        data.encode_frame(frame)


def test_an_unknown_data_set_is_named():
    with pytest.raises(ValueError, match="No data set is called 'iris'"):
        data.read_rows("iris")
    assert "digits" in ALL
    assert "digits" not in PAPER


@pytest.mark.parametrize("name", data.SYNTHETIC)
def test_synthetic_tables_are_the_same_each_time(name):
    (X, y), (again, labels) = (data.make_synthetic(name) for _ in range(2))
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    assert np.isfinite(X).all()


def test_curves_are_the_same_each_time():
    X, y = data.make_curves(50, 20)
    assert np.array_equal(X, data.make_curves(50, 20)[0])
    assert np.ptp(np.log10(np.abs(X))) > 6
    assert set(y.tolist()) == {0, 1}


def test_every_other_table_of_a_kind_is_to_choose_by(tmp_path, monkeypatch):
    monkeypatch.setenv("LHTREE_DATA", str(tmp_path))
    (tmp_path / "frames").mkdir()
    for name in "cab":
        pd.DataFrame({"x": [1.0, 2], "target": [0, 1]}).to_parquet(
            tmp_path / f"frames/{name}.parquet"
        )
    tables = data.list_tables.__wrapped__()
    assert [tables[f"frames/{name}"].role for name in "abc"] == ["choose", "judge", "choose"]
    assert tables["frames/a"][1:3] == (2, 1)
    assert tables["acute_inflammation_1"].role == "choose"
    assert tables["acute_inflammation_2"].role == "judge"
    assert len([name for name in tables if "/" not in name]) == 29
    assert set(comparison.NAMED) == set(page.GOALS) <= set(tables)
