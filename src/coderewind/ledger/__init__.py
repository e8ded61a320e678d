"""The ledger: one fact after the other, each there entirely or not at all."""
