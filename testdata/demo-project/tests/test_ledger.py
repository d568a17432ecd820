from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from tally import Ledger

YEAR = Path(__file__).parent.parent / "data" / "year.csv"


@pytest.fixture
def ledger():
    return Ledger.read(YEAR)


def test_entries_are_in_the_order_of_their_days(ledger):
    days = [entry.day for entry in ledger]
    assert days == sorted(days)


def test_accounts_are_summed(ledger):
    assert ledger.by_account()["rent"] == Decimal("-5100.00")


def test_months_add_up_to_the_balance(ledger):
    assert sum(ledger.by_month().values()) == ledger.balance()


def test_a_period_includes_its_last_day(ledger):
    january = ledger.between(date(2025, 1, 1), date(2025, 1, 31))
    assert january.by_account()["salary"] == Decimal("2400.00")
    assert january.balance() == ledger.by_month()["2025-01"]


def test_a_period_without_entries_is_empty(ledger):
    assert len(ledger.between(date(2024, 1, 1), date(2024, 12, 31))) == 0
