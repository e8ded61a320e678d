"""The command line: parse, call the engine, show. One file per command."""
