"""Reports for people: spans of time and their table, progress bars, pages."""
