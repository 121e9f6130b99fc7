"""Tables of a command: read whole or in blocks, written in blocks."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import typer
from sklearn.datasets import load_svmlight_file

from lhtree.data.validation import join_few

HEAD_BYTES = 1 << 20  # of a CSV file, from which types are inferred
BLOCK_BYTES = 4 << 20  # of a text file, read at a time; several are read ahead
BLOCK_ROWS = 1 << 16  # of any other file
MOST_NAMES = 5  # in a message


class Format(StrEnum):
    """The format of a table in a file."""

    csv = "csv"
    parquet = "parquet"
    arrow = "arrow"
    libsvm = "libsvm"


SUFFIXES = {
    ".csv": Format.csv,
    ".txt": Format.csv,
    ".tsv": Format.csv,
    ".parquet": Format.parquet,
    ".pq": Format.parquet,
    ".arrow": Format.arrow,
    ".feather": Format.arrow,
    ".ipc": Format.arrow,
    ".libsvm": Format.libsvm,
    ".svm": Format.libsvm,
    ".svmlight": Format.libsvm,
}

DataFile = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="CSV, Parquet, Arrow or LIBSVM file; - reads standard input."
    ),
]
DataFormat = Annotated[
    Format | None,
    typer.Option("--format", help="Format of DATA; default: from the file extension, else CSV."),
]
ZeroBased = Annotated[
    bool, typer.Option("--zero-based", help="LIBSVM files number columns from 0, not from 1.")
]


@dataclass(frozen=True)
class Source:
    """A file or stream with a table, and its format."""

    name: str  # "-" is standard input
    format: Format
    delimiter: str = ","
    zero_based: bool = False  # whether the columns of a LIBSVM file count from 0

    @classmethod
    def parse(cls, name: str, given: Format | None = None, *, zero_based: bool = False) -> Source:
        """Return the source that the command line names."""
        suffix = Path(name).suffix.lower()
        kind = choose_format(name, given)
        if zero_based and kind != Format.libsvm:
            raise typer.BadParameter(
                f"--zero-based is for LIBSVM files; {name} is read as {kind}."
            )
        return cls(name, kind, "\t" if suffix == ".tsv" else ",", zero_based)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the bytes; errors of the reader name the file."""
        try:
            if self.name == "-":
                yield sys.stdin.buffer
            else:
                with Path(self.name).open("rb") as file:
                    yield file
        except (pa.ArrowException, UnicodeDecodeError, ValueError, KeyError) as error:
            if isinstance(error, TableError):
                raise
            raise TableError(f"{self}: {' '.join(str(error).split())}") from error

    def __str__(self) -> str:
        return "standard input" if self.name == "-" else self.name


class TableError(ValueError):
    """A table that cannot be read, in one sentence that names it."""


def choose_format(name: str, given: Format | None) -> Format:
    """Return the given format, or else that of the file's ending."""
    if given is not None:
        return given
    suffix = Path(name).suffix.lower()
    if name == "-" or suffix in ("", *SUFFIXES):
        return SUFFIXES.get(suffix, Format.csv)
    raise typer.BadParameter(
        f"{name} has the unknown ending {suffix}; give --format, one of {', '.join(Format)}."
    )


# ---- whole tables


def read_frame(source: Source, text: Sequence[str] = ()) -> pd.DataFrame:
    """Read a whole table; types are inferred, except for the columns known to be text."""
    if source.format == Format.libsvm:
        raise TableError(f"{source}: LIBSVM files have no named columns; use read_libsvm.")
    with source.open() as file:
        if source.format == Format.csv:
            head = file.read(HEAD_BYTES)
            _check_header(source, head)
            stream = pa.PythonFile(_Chained(head, file), mode="r")
            table = pa.csv.read_csv(
                stream,
                parse_options=pa.csv.ParseOptions(delimiter=source.delimiter),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(text, pa.string()), strings_can_be_null=True
                ),
            )
        else:
            content = pa.BufferReader(file.read()) if source.name == "-" else file
            read = pa.parquet.read_table if source.format == Format.parquet else _read_arrow
            table = read(content)
    _check_names(source, table.column_names)
    return to_frame(table)


def _read_arrow(file: Any) -> pa.Table:
    return pa.Table.from_batches(*_open_arrow(file))


def _open_arrow(file: Any) -> tuple[Iterator[pa.RecordBatch], pa.Schema]:
    """Open an Arrow file or stream: files begin with a mark."""
    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    if not is_file:
        reader = pa.ipc.open_stream(file)
        return iter(reader), reader.schema
    reader = pa.ipc.open_file(file)
    return (reader.get_batch(i) for i in range(reader.num_record_batches)), reader.schema


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Return a frame of types that the classifiers accept."""
    fields = []
    for field in table.schema:
        has_gaps = table.column(field.name).null_count > 0
        is_number = pa.types.is_decimal(field.type) or pa.types.is_null(field.type)
        if is_number or (pa.types.is_boolean(field.type) and has_gaps):
            field = field.with_type(pa.float64())
        fields.append(field)
    return table.cast(pa.schema(fields)).to_pandas(date_as_object=False)


def read_libsvm(source: Source, n_features: int | None = None) -> tuple[Any, Any]:
    """Read a LIBSVM file: a sparse matrix and labels."""
    with source.open() as file:
        X, y = _parse_libsvm(source, file.read(), n_features)
    return X, _tidy_labels(y)


def _parse_libsvm(source: Source, text: bytes, n_features: int | None) -> tuple[Any, Any]:
    """Read lines of a LIBSVM file, without guessing from them where its columns begin."""
    try:
        X, y = load_svmlight_file(
            io.BytesIO(text), n_features=n_features, zero_based=source.zero_based
        )
    except ValueError as error:
        if "Invalid index 0 " not in str(error):
            raise
        raise TableError(
            f"{source} has a column 0, but LIBSVM files number columns from 1; give --zero-based."
        ) from error
    return X, y


def _tidy_labels(y: Any) -> Any:
    is_whole = np.all(y == np.floor(y)) and np.all(np.abs(y) < 2**53)
    return y.astype(np.int64) if is_whole else y


# ---- blocks


def iterate_frames(
    source: Source, numbers: Sequence[str], text: Sequence[str]
) -> Iterator[pd.DataFrame]:
    """Read the named columns block by block; their kinds are known in advance."""
    wanted = [*numbers, *text]
    with source.open() as file:
        if source.format == Format.csv:
            yield from map(to_frame, _iterate_csv(source, file, numbers, text))
        elif source.format == Format.parquet:
            content = pa.BufferReader(file.read()) if source.name == "-" else file
            reader = pa.parquet.ParquetFile(content)
            check_columns(source, reader.schema_arrow.names, wanted)
            for batch in reader.iter_batches(BLOCK_ROWS, columns=wanted):
                yield to_frame(pa.Table.from_batches([batch]))
        else:
            content = io.BytesIO(file.read()) if source.name == "-" else file
            batches, schema = _open_arrow(content)
            check_columns(source, schema.names, wanted)
            for batch in batches:
                table = pa.Table.from_batches([batch]).select(wanted)
                for start in range(0, len(table), BLOCK_ROWS):
                    yield to_frame(table.slice(start, BLOCK_ROWS))


def _iterate_csv(
    source: Source, file: BinaryIO, numbers: Sequence[str], text: Sequence[str]
) -> Iterator[pa.Table]:
    head = file.read(HEAD_BYTES)
    names = _check_header(source, head)
    check_columns(source, names, [*numbers, *text])
    parse = pa.csv.ParseOptions(delimiter=source.delimiter)
    inferred = pa.csv.read_csv(pa.BufferReader(_cut_lines(head)), parse_options=parse).schema
    # The first rows alone may suggest an integer column that has 1.5 later.
    kept = (pa.types.is_boolean, pa.types.is_temporal)
    types = {
        name: inferred.field(name).type
        if any(is_kind(inferred.field(name).type) for is_kind in kept)
        else pa.float64()
        for name in numbers
    }
    reader = pa.csv.open_csv(
        pa.PythonFile(_Chained(head, file), mode="r"),
        read_options=pa.csv.ReadOptions(block_size=BLOCK_BYTES),
        parse_options=parse,
        convert_options=pa.csv.ConvertOptions(
            include_columns=[*numbers, *text],
            column_types={**types, **dict.fromkeys(text, pa.string())},
            strings_can_be_null=True,
        ),
    )
    for batch in reader:
        yield pa.Table.from_batches([batch])


def iterate_libsvm(source: Source, n_features: int) -> Iterator[Any]:
    """Read the rows of a LIBSVM file block by block, as sparse matrices."""
    with source.open() as file:
        while lines := file.readlines(BLOCK_BYTES):
            text = b"".join(lines)
            if text.strip():
                yield _parse_libsvm(source, text, n_features)[0]


class _Chained:
    """A stream whose first bytes have been read already."""

    closed = False

    def __init__(self, head: bytes, tail: BinaryIO) -> None:
        self._head, self._tail = io.BytesIO(head), tail

    def read(self, size: int = -1) -> bytes:
        return self._head.read(size) or self._tail.read(size)

    def close(self) -> None:
        """Leave the stream open: its owner closes it."""


def _cut_lines(head: bytes) -> bytes:
    """Drop the last line, which may be incomplete, unless it is the only one."""
    lines = head.rsplit(b"\n", 1)[0]
    return lines if b"\n" in lines and len(head) == HEAD_BYTES else head


def _check_header(source: Source, head: bytes) -> list[str]:
    if not head.strip():
        raise TableError(f"{source} is empty; its first line must name the columns.")
    line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8")
    names = next(csv.reader([line.rstrip("\r")], delimiter=source.delimiter))
    _check_names(source, names)
    return names


def _check_names(source: Source, names: Sequence[str]) -> None:
    if twice := {name for name in names if list(names).count(name) > 1}:
        raise TableError(f"{source} has several columns named {sorted(twice)[0]!r}; rename them.")


def check_columns(source: Source, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise an error that names the columns that a table lacks."""
    if missing := [name for name in wanted if name not in names]:
        raise TableError(
            f"{source} lacks the column{'s' if len(missing) > 1 else ''} "
            f"{list_few(missing)}, which the model needs."
        )


def list_few(names: Sequence[str]) -> str:
    """Return the first few names, quoted, in one line."""
    return join_few([repr(name) for name in names], MOST_NAMES)


# ---- writing


@contextmanager
def open_writer(file: BinaryIO, kind: Format, schema: pa.Schema) -> Iterator[Any]:
    """Return a writer whose `write_table` adds rows to a file."""
    if kind == Format.csv:
        writer = pa.csv.CSVWriter(file, schema)
    elif kind == Format.parquet:
        writer = pa.parquet.ParquetWriter(file, schema)
    elif kind == Format.arrow:
        writer = pa.ipc.new_file(file, schema)
    else:
        raise typer.BadParameter("predictions can only be written as csv, parquet or arrow.")
    with writer:
        yield writer
