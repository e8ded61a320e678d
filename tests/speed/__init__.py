"""What keeps captures quick, without a clock: processes that are not started, and the like."""
