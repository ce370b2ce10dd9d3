"""Atomic writing of files, remote files by URL, and file formats."""
