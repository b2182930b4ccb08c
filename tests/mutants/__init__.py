"""Changes one place of the product at a time and looks whether the tests notice: `scripts/mutants`."""
