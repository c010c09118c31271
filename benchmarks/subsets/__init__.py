"""Methods that choose evaluations at several fidelities, on recorded evaluations."""
