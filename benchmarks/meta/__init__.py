"""Transfer between tasks: what earlier studies are worth, and what they cost where they mislead."""
