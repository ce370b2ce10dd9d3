"""Numbers of few bits: quantising, also in training, and back."""
