"""All entries, and the sums over them."""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

from tally.entry import Entry


class Ledger:
    """Entries in the order of their days."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = sorted(entries)

    @classmethod
    def read(cls, path: str | Path) -> "Ledger":
        with open(path, newline="", encoding="utf-8") as file:
            return cls(Entry.from_row(row) for row in csv.DictReader(file))

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def between(self, first: date, last: date) -> "Ledger":
        """The entries from the first day to the last, both included."""
        return Ledger(entry for entry in self if first <= entry.day < last)

    def by_account(self) -> dict[str, Decimal]:
        sums: dict[str, Decimal] = defaultdict(Decimal)
        for entry in self:
            sums[entry.account] += entry.amount
        return dict(sums)

    def by_month(self) -> dict[str, Decimal]:
        sums: dict[str, Decimal] = defaultdict(Decimal)
        for entry in self:
            sums[entry.day.strftime("%Y-%m")] += entry.amount
        return dict(sums)

    def balance(self) -> Decimal:
        return sum((entry.amount for entry in self), Decimal(0))
