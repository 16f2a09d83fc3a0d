"""What every room leans on: errors, argument checks, registries, files. Not part of the public face."""
