"""All recipes: importing this declares them."""

from . import (
    recipes_dense,
    recipes_loss,
    recipes_moving,
    recipes_pointwise,
    recipes_sequence,
    recipes_sequence_rows,
    recipes_update,
)

__all__ = [
    "recipes_dense", "recipes_loss", "recipes_moving", "recipes_pointwise", "recipes_sequence",
    "recipes_sequence_rows", "recipes_update",
]  # fmt: skip
