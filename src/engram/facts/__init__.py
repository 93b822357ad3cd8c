"""Your own facts: learn them, ask what a model believes, rewrite one."""
