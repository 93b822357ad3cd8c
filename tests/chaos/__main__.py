"""Draws faults from a seed, injects them one after another, and prints a table of what became of them."""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from chaos import clusters, damage, disks, processes
from chaos.workshop import Verdict, Workshop

Kinds = dict[str, tuple[Callable[[Workshop, Random], Verdict], int]]
HERE: Kinds = {  # and how many of a hundred faults are such
    "damage, finished": (damage.finished_record, 26),
    "damage, part-done": (damage.part_done_record, 26),
    "damage, zip": (damage.bundles, 12),
    "folder removed": (damage.removed_in_mid_run, 6),
    "full disk": (disks.full_disk, 8),
    "read-only": (disks.read_only, 4),
    "power cut": (disks.power_cut, 4),
    "signal to run": (processes.signal_to_run, 5),
    "signal to resume": (processes.signal_to_resume, 4),
    "sweep worker killed": (processes.workers_killed, 1),
    "trainer killed": (processes.trainer_killed, 1),
    "lab server killed": (processes.server_killed, 1),
    "cold start": (processes.cold_start, 2),
}
KINDS: dict[str, Kinds] = {"here": HERE, "cluster": clusters.KINDS}
OUTCOMES = ("survived", "named", "not possible", "FAILED")


def planned(kinds: Kinds, faults: int, seed: int) -> list[str]:
    """Every kind once, as far as there are faults; the others by their shares, in random order."""
    chance, weights = Random(seed), [weight for _, weight in kinds.values()]
    first = random.Random(seed).sample(list(kinds), len(kinds))[:faults]
    plan = first + chance.choices(list(kinds), weights, k=faults - len(first))
    chance.shuffle(plan)
    return plan


def inject(kinds: Kinds, shop: Workshop, kind: str, seed: int, number: int) -> Verdict:
    """One fault; whatever it raises is a failure of what was tested."""
    try:
        return kinds[kind][0](shop, Random(f"{seed}/{number}"))
    except Exception as error:
        return Verdict(f"{type(error).__name__}: {error}", "FAILED")


def run(where: str, faults: int, seed: int, only: int | None = None) -> Counter[tuple[str, str]]:
    """How often each kind ended in each way."""
    found: Counter[tuple[str, str]] = Counter()
    kinds = KINDS[where]
    with tempfile.TemporaryDirectory(prefix="chaos", ignore_cleanup_errors=True) as folder, clusters.ended():
        shop = Workshop(Path(folder).resolve())
        for number, kind in enumerate(planned(kinds, faults, seed)):
            if only is not None and number != only:
                continue
            began = time.monotonic()
            verdict = inject(kinds, shop, kind, seed, number)
            found[kind, verdict.how] += 1
            tell(number, kind, verdict, time.monotonic() - began)
            if verdict.how == "FAILED":
                print(f"      again: make chaos WHERE={where} FAULTS={faults} SEED={seed} ONLY={number}", flush=True)
            shop.clear()
    return found


def tell(number: int, kind: str, verdict: Verdict, seconds: float) -> None:
    said = f": {verdict.said[:160]}" if verdict.said else ""
    print(f"{number:4d}  {kind:<20} {seconds:5.1f} s  {verdict.how}  {verdict.what}{said}", flush=True)


def print_table(found: Counter[tuple[str, str]]) -> None:
    print(f"\n{'kind':<22}{'faults':>8}" + "".join(f"{outcome:>14}" for outcome in OUTCOMES))
    kinds = [kind for some in KINDS.values() for kind in some]
    for kind in kinds:
        row = [found[kind, outcome] for outcome in OUTCOMES]
        if sum(row):
            print(f"{kind:<22}{sum(row):>8}" + "".join(f"{number:>14}" for number in row))
    total = [sum(found[kind, outcome] for kind in kinds) for outcome in OUTCOMES]
    print(f"{'all':<22}{sum(total):>8}" + "".join(f"{number:>14}" for number in total))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="chaos", description="Faults that are injected into real runs.")
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--where", choices=KINDS, default="here", help="on this machine, or on clusters that are begun")
    parser.add_argument("--seed", type=int, default=None, help="by default another one each time")
    parser.add_argument("--only", type=int, default=None, help="the number of one fault, to see it again")
    asked = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # disks are taken down on the way out
    seed = random.SystemRandom().randrange(10**6) if asked.seed is None else asked.seed
    print(f"{asked.faults} faults, seed {seed}", flush=True)
    found = run(asked.where, asked.faults, seed, asked.only)
    print_table(found)
    return 1 if any(how == "FAILED" for _, how in found) else 0


if __name__ == "__main__":
    sys.exit(main())
