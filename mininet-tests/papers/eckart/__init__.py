"""Eckart et al. (PA-UDP): a receiver's disk sets the rate."""
