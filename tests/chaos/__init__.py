"""Chaos: faults that are injected into real runs. After each one, a run must have survived, or said what is wrong.

PYTHONPATH=tests python -m chaos --faults 300 --seed 7

survived   the result is that of an undisturbed run, to the byte
named      one clear line says what is wrong, and nothing that was there before is lost
FAILED     anything else, with the command that repeats it

A kind of fault is a function kind(shop, chance): it prepares copies of small runs, injects one fault that `chance`
draws, and returns a Verdict, or raises Failed.
"""
