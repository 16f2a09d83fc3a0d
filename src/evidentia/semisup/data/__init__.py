"""Data sets by name: few labels, and a pool with samples of no class."""
