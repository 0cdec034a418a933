"""Training of PyTorch models within a number of bytes."""
