"""What is known of each agent: its tools, its settings files, its session files. No engine here."""
