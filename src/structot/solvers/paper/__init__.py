"""The paper's three algorithms, in the standard reading of their text."""
