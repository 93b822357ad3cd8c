"""What experiments cost: core-seconds, FLOP and bytes of every Spec, measured on slices of it."""
