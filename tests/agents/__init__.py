"""Claude Code and Droid: payloads replayed, sessions cut, and the real programs on loopback."""
