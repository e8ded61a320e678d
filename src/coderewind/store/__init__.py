"""The store: git objects of our own, the files of a worktree, and how one becomes the other."""
