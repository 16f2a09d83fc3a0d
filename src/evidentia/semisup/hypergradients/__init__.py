"""Which unlabeled samples help: how the loss on clean ones changes with their weights."""
