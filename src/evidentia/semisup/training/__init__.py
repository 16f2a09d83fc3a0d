"""The training loop, what it draws, checks and tells, and what a broken-off run is known by."""
