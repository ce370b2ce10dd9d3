"""Helpers of data sets: finding, downloading and unpacking files, samples of images, pairs of sentences."""
