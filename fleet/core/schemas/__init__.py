"""JSON Schemas of tools: cleaned, shown to models, and arguments validated against them, within bounds."""
