"""The engine: the verbs. Surfaces call it; it knows no agent, no terminal, no environment."""
