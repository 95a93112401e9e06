"""What the record says: pure functions from recorded episodes to numbers with intervals."""
