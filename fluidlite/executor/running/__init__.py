"""Running programs: feeds, what runs a step, the executor."""
