"""Facts of one's own: learn them, ask what a model believes, rewrite one."""
