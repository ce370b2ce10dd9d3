"""Communication of trainers and parameter servers: messages of arrays over gRPC, without pickle."""

from .messages import Message, RpcError, ServerLost, TrainerLost

__all__ = ["Message", "RpcError", "ServerLost", "TrainerLost"]
