"""Networks, the user's own or ours: their last layer, their features, and how batches go through them."""
