"""From clips to a trained network: what is held out, what a clip is changed by, what counts, and the loop."""
