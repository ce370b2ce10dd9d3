"""Trainers of parameter servers: their operators, and what runs beside them."""
