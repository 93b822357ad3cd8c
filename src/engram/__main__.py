"""The command `engram`, also as `python -m engram`. It listens to signals before anything heavy is loaded."""

import gc

from engram.signals import listen

OBJECTS_BETWEEN_COLLECTIONS = 50_000  # most stay: a look for garbage every 700 of them takes a tenth of a start


def main() -> None:
    listen()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    from engram.cli.main import main as run_command

    run_command()


if __name__ == "__main__":
    main()
