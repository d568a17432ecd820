from datetime import date
from decimal import Decimal

import pytest

from tally import Entry, parse_amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [("12", "12"), (" 1,234.50 ", "1234.50"), ("-3.20", "-3.20"), ("(1,000.00)", "-1000.00")],
)
def test_amounts_are_read_as_bookkeepers_write_them(text, amount):
    assert parse_amount(text) == Decimal(amount)


def test_what_is_no_amount_is_refused():
    with pytest.raises(ValueError, match="twelve"):
        parse_amount("twelve")


def test_a_row_becomes_an_entry():
    entry = Entry.from_row({"day": "2025-01-31", "account": " Rent", "amount": "(850.00)", "note": "January"})
    assert entry == Entry(date(2025, 1, 31), "rent", Decimal("-850.00"), "January")
