"""Recurrent networks in one operator, and single steps of them."""
