"""What the product's tests and the experiments share."""
