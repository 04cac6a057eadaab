"""Many small problems in one compiled call: `solve_batch`, and what `structot.text` is made of."""
