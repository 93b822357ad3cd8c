"""From a Spec to its Record: the one place where task, model, learning and probes meet."""
