"""The messages of Fluid's files, as classes of protobuf (`fluid.proto`)."""

from ...base import missing

__all__ = ["framework_pb2"]

__getattr__ = missing.reporter(__name__)
