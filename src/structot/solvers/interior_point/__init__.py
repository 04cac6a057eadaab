"""The central path of a linear program, or of one with entropy."""
