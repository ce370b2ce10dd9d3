"""What data sets share: files found, downloaded and unpacked, samples of images, pairs of sentences."""
