"""What trainers and parameter servers say to each other: messages of arrays over gRPC, of which nothing is pickled."""

from .messages import Message, RpcError, ServerLost, TrainerLost

__all__ = ["Message", "RpcError", "ServerLost", "TrainerLost"]
