"""A user's own samples and labels, in any form, as tensors to train on."""
