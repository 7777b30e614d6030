"""A new environment from a few answers: its files, planned before they are there."""
