"""What must hold whatever a user does: a machine of edits, captures and moves."""
