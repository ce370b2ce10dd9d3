"""The messages of Fluid's files, as classes of protobuf (`fluid.proto`)."""

__all__ = ["framework_pb2"]
