"""What can be taken out of the drawers of the page: CSV, and Python that is run as it was copied."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, expect

from pages import lab_of, wait


def taken(page: Page, panel: str, tmp_path: Path) -> Iterator[tuple[str, list[list[str]], Any]]:
    """By what it is called: the cells of each CSV of a panel, and what the copied Python calls `values`."""
    found = page.locator(f"#panel-{panel} .drawer li").filter(has=page.get_by_test_id("csv"))
    for line in found.all():
        with page.expect_download() as download:
            line.get_by_test_id("csv").click()
        download.value.save_as(tmp_path / "x.csv")
        cells = list(csv.reader(io.StringIO((tmp_path / "x.csv").read_text(encoding="utf-8"))))
        yield (
            line.locator("b").inner_text(),
            cells,
            python(page, line) if line.get_by_test_id("python").count() else None,
        )


def python(page: Page, line: Any) -> Any:
    line.get_by_test_id("python").click()
    names: dict[str, Any] = {}
    exec(wait(lambda: line.locator("xpath=../..").get_by_test_id("code").inner_text()), names)
    return names["values"]


def numbers(cells: list[list[str]]) -> np.ndarray:
    return np.array([[float(cell) if cell else np.nan for cell in row] for row in cells])


def open_drawer(page: Page, panel: str) -> None:
    page.get_by_test_id(f"data-{panel}").click()
    expect(page.locator(f"#panel-{panel} .formula")).not_to_be_empty()


def settled(page: Page) -> None:
    """Until every picture of the view is drawn."""
    page.wait_for_timeout(700)
    wait(lambda: all(lab_of(page, f"drawn('{name}')") for name in lab_of(page, "view()")["pictures"]))
