"""A second pair of eyes: record files read and claims decided without a line of Engram, with numpy and scipy only."""

import gzip
import json
import lzma
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from math import inf, log, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta, betabinom, t

POINTS = ("exact", "worst of seeds", "prediction")  # held against the band as they are: they have no interval
Record = tuple[dict[str, Any], list[dict[str, Any]]]  # its Spec and its rows


def records(folder: Path, admit: Callable[[dict[str, Any]], bool]) -> Iterator[Record]:
    """A record is a folder, perhaps in a zip file, with spec.json and rows.jsonl, packed as gz, xz or columns in xz."""
    files = {path.relative_to(folder).as_posix(): path.read_bytes for path in folder.glob("*/*.*")}
    for box in map(zipfile.ZipFile, folder.glob("*.zip")):
        files |= {name: partial(box.read, name) for name in box.namelist()}
    for name in files:
        if name.endswith("/spec.json") and admit(spec := json.loads(files[name]())):
            rows = name.replace("spec.json", "rows.jsonl.")
            packed = next(UNPACK[end](files[rows + end]()) for end in UNPACK if rows + end in files)
            yield spec, packed


def rows_of(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


def rows_of_columns(content: bytes) -> list[dict[str, Any]]:
    """Names of each kind of row, the kind of each row, then the values of every column."""
    first, which, *columns = content.decode().split("\n")
    kinds = json.loads(first)
    values = {name: map(json.loads, columns.pop(0).split("\t")) for name in dict.fromkeys(chain(*kinds))}
    return [{name: next(values[name]) for name in kinds[int(kind)]} for kind in which.split()]


UNPACK: dict[str, Callable[[bytes], list[dict[str, Any]]]] = {
    "gz": lambda content: rows_of(gzip.decompress(content)),
    "xz": lambda content: rows_of(lzma.decompress(content)),
    "columns.xz": lambda content: rows_of_columns(lzma.decompress(content)),
}


def student(values: np.ndarray, measure: dict[str, Any]) -> tuple[float, float]:
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        half = measure["resolution"] or inf
        return values[0] - half, values[0] + half
    return t.interval(0.95, len(values) - 1, values.mean(), values.std(ddof=1) / sqrt(len(values)))


def exact_binomial(values: np.ndarray, measure: dict[str, Any]) -> tuple[float, float]:
    """Clopper and Pearson by quantiles of beta distributions."""
    of, k = sum(measure["out_of"]), round(float(values @ measure["out_of"]))
    low, high = beta.ppf(0.025, k, of - k + 1), beta.ppf(0.975, k + 1, of - k)
    return 0.0 if k == 0 else float(low), 1.0 if k == of else float(high)


def beta_binomial(values: np.ndarray, measure: dict[str, Any]) -> tuple[float, float]:
    """The posterior of p, summed over even quantiles of both priors: arcsine for p, Beta(1, 5) for ρ."""
    theta, rho = (np.arange(900) + 0.5) / 900, beta.ppf((np.arange(300) + 0.5) / 300, 1, 5)
    p = np.sin(theta * pi / 2)[:, None] ** 2
    hits, of = np.rint(values * measure["out_of"]), measure["out_of"]
    a, b = p * (1 - rho) / rho, (1 - p) * (1 - rho) / rho
    logs = sum(betabinom.logpmf(k, m, a, b) for k, m in zip(hits, of, strict=True))
    mass = np.exp(logs - np.max(logs)).sum(axis=1)
    low, high = np.interp([0.025, 0.975], np.cumsum(mass) / mass.sum(), np.sin((theta + 0.5 / 900) * pi / 2) ** 2)
    return 0.0 if not any(hits) else float(low), 1.0 if (hits == of).all() else float(high)


def verdict(values: Sequence[float | None], measure: dict[str, Any]) -> tuple[float, float, str]:
    """The interval by the method that the measure names, and what it says about the band."""
    found, method = np.array(values, float), measure["method"]
    low, high = (edge if edge is not None else end for edge, end in zip(measure["predicted"], (-inf, inf), strict=True))
    if method in POINTS:
        left = right = float(found[np.abs(found).argmax()])
    elif np.isnan(found).any() or (len(found) == 1 and method != "exact binomial"):
        return -inf, inf, "inconclusive"
    else:
        ways = {"beta-binomial": beta_binomial, "exact binomial": exact_binomial}
        left, right = ways.get(method, student)(found, measure)
    inside, outside = low < left and right < high, right <= low or left >= high
    return left, right, "agrees" if inside else "disagrees" if outside else "inconclusive"


def capacity(spec: dict[str, Any], rows: list[dict[str, Any]]) -> float:
    """Where the mean accuracy crosses the target, between the largest size that passed and the next that failed."""
    means = {n: np.mean([row["accuracy"] for row in rows if row["n"] == n]) for n in {row["n"] for row in rows}}
    lo = max(n for n in means if means[n] >= spec["target"])
    hi = min(n for n in means if n > lo)
    return lo + (hi - lo) * (means[lo] - spec["target"]) / (means[lo] - means[hi])


def curve(rows: list[dict[str, Any]], column: str) -> tuple[np.ndarray, np.ndarray]:
    steps, values = zip(*((row["step"], row[column]) for row in rows if column in row), strict=True)
    return np.array(steps), np.array(values)


def log_of_births(rows: list[dict[str, Any]], later: str, first: str) -> float:
    steps = [
        next(step for step, value in zip(*curve(rows, name), strict=True) if value > 0.5) for name in (later, first)
    ]
    return log(max(1, steps[0]) / max(1, steps[1]))
