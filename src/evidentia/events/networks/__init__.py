"""Causal networks, one file a family, and the layers that they are made of."""
