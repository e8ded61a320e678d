"""The black-box corpus: what a user may expect of `rewind`, asked of the real command only."""
