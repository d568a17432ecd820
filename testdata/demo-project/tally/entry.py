"""One line of the ledger."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation


def parse_amount(text: str) -> Decimal:
    """Read an amount as bookkeepers write it: 1,234.50, -12 or (12.00)."""
    cleaned = text.strip().replace(",", "")
    negative = cleaned.startswith("(") and cleaned.endswith(")")
    if negative:
        cleaned = cleaned[1:-1]
    try:
        amount = Decimal(cleaned)
    except InvalidOperation as fault:
        raise ValueError(f"not an amount: {text!r}") from fault
    return -amount if negative else amount


@dataclass(frozen=True, order=True)
class Entry:
    """A booking: money that an account got (positive) or gave (negative)."""

    day: date
    account: str
    amount: Decimal
    note: str = ""

    @classmethod
    def from_row(cls, row: dict[str, str]) -> "Entry":
        return cls(
            day=date.fromisoformat(row["day"].strip()),
            account=row["account"].strip().lower(),
            amount=parse_amount(row["amount"]),
            note=row.get("note", "").strip(),
        )
