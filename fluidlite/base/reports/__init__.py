"""What people look at: spans of time and their table, progress bars, pages."""
