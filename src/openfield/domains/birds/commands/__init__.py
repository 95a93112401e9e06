"""Commands of Birds alone: `openfield birds generate` and `openfield birds import`, one module each."""
