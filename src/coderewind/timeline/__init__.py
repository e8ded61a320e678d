"""The read model: what a user can pick, built from the ledger."""
