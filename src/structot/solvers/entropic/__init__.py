"""Newton's method on the smooth dual of a problem with entropy."""
