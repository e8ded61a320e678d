"""What agents call: `rewind hook EVENT`. One process for each event, so start-up counts.

Nothing here imports click, rich, asyncio, typing or dataclasses; tests/agents/test_hook_imports.py
holds the list of what may be loaded.
"""
