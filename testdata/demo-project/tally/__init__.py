"""Sums of a small ledger that is kept as CSV."""

from tally.entry import Entry, parse_amount
from tally.ledger import Ledger

__all__ = ["Entry", "Ledger", "parse_amount"]
