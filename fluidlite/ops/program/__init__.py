"""What programs have to do with their surroundings: feeds, fetches, readers, printing, functions, other processes."""
