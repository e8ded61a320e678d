"""`rewind mcp`: checkpoints for agents that speak the Model Context Protocol."""
