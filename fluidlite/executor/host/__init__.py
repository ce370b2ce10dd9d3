"""Plans of the host: calls that the engine makes."""
