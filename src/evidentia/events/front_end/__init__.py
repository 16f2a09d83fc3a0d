"""From samples to frames: the log-mel front end of sound, and series as they are, offline and a chunk at a time."""
