"""The worlds: one folder each, all with the same file names."""
