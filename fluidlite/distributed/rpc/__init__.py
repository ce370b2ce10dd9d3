"""Communication of trainers and parameter servers: messages of arrays over gRPC, without pickle."""

from .transport import Message, RpcError, ServerLost, TrainerLost

__all__ = ["Message", "RpcError", "ServerLost", "TrainerLost"]
