"""Functions drawn from a Gaussian process, and earlier tasks that are a given gap away from them."""
