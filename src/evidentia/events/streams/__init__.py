"""Live streams: from frames to decisions, alarms and detections, and what is remembered between two chunks."""
