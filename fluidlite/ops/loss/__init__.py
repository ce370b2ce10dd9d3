"""Losses, and what classifiers over many classes and taggers are trained and read by."""
