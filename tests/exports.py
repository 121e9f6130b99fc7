"""Running exported models: compilers and databases."""

import contextlib
import ctypes
import shutil
import sqlite3
import subprocess

import numpy as np
import pytest

from lhtree.export.writing_sql import quote_name

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffp-contract=off"]


def compile_c(text, folder, level="-O2", prefix="lhtree"):
    """Return a compiled program; skip the test without a compiler."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    (folder / "model.c").write_text(text, encoding="ascii")
    library = folder / f"model{len(list(folder.iterdir()))}.so"
    command = [compiler, *FLAGS, level, "-shared", "-fPIC", "model.c", "-o", library.name, "-lm"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    program = ctypes.CDLL(str(library))
    for name in ("class_name", "column_name"):
        if f"{prefix}_{name}(" in text:
            getattr(program, f"{prefix}_{name}").restype = ctypes.c_char_p
    return program


def query(database, statement, table, columns, X):
    """Run a statement on a table of these rows; `columns` may be names or name to type."""
    kinds = columns if isinstance(columns, dict) else dict.fromkeys(columns, "DOUBLE PRECISION")
    declared = ", ".join(f"{quote_name(name)} {kind}" for name, kind in kinds.items())
    database.execute(f"CREATE TABLE {quote_name(table)} ({declared})")
    marks = ", ".join("?" * len(kinds))
    rows = [[None if value != value else value for value in row] for row in np.asarray(X).tolist()]
    database.executemany(f"INSERT INTO {quote_name(table)} VALUES ({marks})", rows)
    result = database.execute(statement)
    names = [column[0] for column in result.description]
    return names, sorted(result.fetchall(), key=lambda row: row[0])


def query_sqlite(statement, table, columns, X):
    """Run a statement in SQLite."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        return query(connection, statement, table, columns, X)


def query_duckdb(statement, table, columns, X):
    """Run a statement in DuckDB."""
    with pytest.importorskip("duckdb").connect() as connection:
        return query(connection, statement, table, columns, X)


DATABASES = {"sqlite": query_sqlite, "duckdb": query_duckdb}
