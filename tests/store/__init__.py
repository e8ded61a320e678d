"""Tests of the store and the ledger against real git."""
