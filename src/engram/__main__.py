"""The command `engram`, also as `python -m engram`. It listens to signals before anything heavy is loaded."""

from engram.signals import listen


def main() -> None:
    listen()
    from engram.cli.main import main as run_command

    run_command()


if __name__ == "__main__":
    main()
