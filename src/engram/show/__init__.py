"""What a person sees: figures, the terminal view, the report. Reads records only."""
