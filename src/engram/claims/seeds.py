"""Seeds as a person writes them: a number of them, a range, or some."""

from collections.abc import Sequence

from engram.errors import EngramError

MANY = 1000  # a number from here on is more likely one of the seeds: registered ones begin at 10,000


def read_seeds(words: str) -> list[int]:
    """
    >>> read_seeds("3"), read_seeds("10000-10002"), read_seeds("4,7,")
    ([0, 1, 2], [10000, 10001, 10002], [4, 7])
    """
    first, dash, last = words.partition("-")
    if words.isdecimal() and int(words) >= MANY:
        raise EngramError(
            f"--seeds {words}: did you mean --seeds {words}-{words}, a single seed? "
            f"{int(words):,} seeds are --seeds 0-{int(words) - 1}"
        )
    if words.isdecimal():
        seeds = list(range(int(words)))
    elif dash and first.isdecimal() and last.isdecimal():
        seeds = list(range(int(first), int(last) + 1))
    else:
        parts = [part for part in words.split(",") if part]
        seeds = [int(part) for part in parts] if all(map(str.isdecimal, parts)) else []
    if not seeds:
        raise EngramError(f"--seeds: a number of seeds (8), a range (10000-10007) or some (4,7); got {words!r}")
    return seeds


def seeds_in_words(seeds: Sequence[int]) -> str:
    """The shortest words that `read_seeds` reads as these.

    >>> seeds_in_words([0, 1, 2]), seeds_in_words(range(10000, 10003)), seeds_in_words([4, 7])
    ('3', '10000-10002', '4,7')
    """
    if list(seeds) == list(range(len(seeds))) and len(seeds) < MANY:
        return str(len(seeds))
    if list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]}-{seeds[-1]}"
    return ",".join(map(str, seeds)) + ("," if len(seeds) == 1 else "")
