"""Experiments that anyone can run again: data, protocol and figures of each in one place."""
