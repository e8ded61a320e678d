"""Speed and size, as ratios against git and the methods of other tools. See speed.py."""
