"""Routes: an interior-point method over lanes, written once for NumPy and torch."""
