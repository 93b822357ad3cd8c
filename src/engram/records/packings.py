"""How files of records may be packed, and how they are unpacked: a little at a time, whatever they claim to hold."""

import lzma
import zlib
from collections.abc import Iterator

from engram.records.columns import MOST as MOST_COLUMNS
from engram.records.columns import by_rows

MOST_DICTIONARY = 64 << 20  # bytes that unpacking xz may take
AT_A_TIME = 1 << 20  # bytes of a long file


def gunzipped(content: bytes, most: int) -> Iterator[bytes]:
    """Some at a time, and no more than a record may hold, whatever the file claims."""
    stream, total = zlib.decompressobj(wbits=31), 0
    while not stream.eof:
        piece = stream.decompress(content, AT_A_TIME)
        content, total = stream.unconsumed_tail, total + len(piece)
        if total > most or not (piece or stream.eof):
            raise EOFError(f"it is cut, or larger than {most >> 20} MB")
        yield piece


def unxzed(content: bytes, most: int) -> Iterator[bytes]:
    """The same of xz, in which rows take a quarter less."""
    stream, total = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_DICTIONARY), 0
    while not stream.eof:
        piece, content = stream.decompress(content, AT_A_TIME), b""
        total += len(piece)
        if total > most or (stream.needs_input and not stream.eof):
            raise EOFError(f"it is cut, or larger than {most >> 20} MB")
        yield piece


def unxzed_columns(content: bytes, most: int) -> Iterator[bytes]:
    """The same of rows that stand column by column, which are unpacked as a whole."""
    return by_rows(b"".join(unxzed(content, min(most, MOST_COLUMNS))))


PACKINGS = {"gz": gunzipped, "xz": unxzed, "columns.xz": unxzed_columns}  # what stands behind the name of a file
