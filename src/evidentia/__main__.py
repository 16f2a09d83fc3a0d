"""`python -m evidentia`: the command, where its script is not on the path."""

from evidentia.cli import app

if __name__ == "__main__":
    app()
