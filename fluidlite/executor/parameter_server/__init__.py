"""Trainers with parameter servers: their operators, and the communicator in the background."""
