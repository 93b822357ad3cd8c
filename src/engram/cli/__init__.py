"""The command line: a file for each group of commands. What is heavy is imported inside the command that needs it."""
