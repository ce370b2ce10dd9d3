"""Losses, sampled and hierarchical classifiers, and taggers (CRF, CTC)."""
