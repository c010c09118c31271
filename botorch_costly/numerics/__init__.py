"""Pure tensor functions: no module, no state, no logging."""
