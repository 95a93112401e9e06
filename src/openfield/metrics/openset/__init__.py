"""Open-set recognition: known and unknown told apart, the known classified, the change noticed."""
