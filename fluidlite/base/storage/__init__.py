"""Files that are whole or not there, and those that lie elsewhere, by URLs."""
