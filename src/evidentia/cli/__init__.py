"""The `evidentia` command: parses, calls, prints."""

from evidentia.cli.app import app

__all__ = ["app"]
