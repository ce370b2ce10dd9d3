"""`paddle.reader.creator`: readers from arrays and files."""

from ...reader import np_array, recordio, text_file

__all__ = ["np_array", "recordio", "text_file"]
