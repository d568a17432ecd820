"""Print the sums of a period."""

import sys
from datetime import date

from tally.ledger import Ledger


def main(path: str, first: str, last: str) -> None:
    period = Ledger.read(path).between(date.fromisoformat(first), date.fromisoformat(last))
    for account, amount in sorted(period.by_account().items()):
        print(f"{account:<12}{amount:>12,.2f}")
    print(f"{'balance':<12}{period.balance():>12,.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
