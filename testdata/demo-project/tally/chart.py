"""A picture of the months."""

import sys

import matplotlib.pyplot as plt

from tally.ledger import Ledger


def draw(ledger: Ledger, path: str) -> None:
    months = ledger.by_month()
    sums = [float(amount) for amount in months.values()]
    figure, axes = plt.subplots(figsize=(7, 3.5), dpi=100)
    axes.bar(list(months), sums, color=["#3a7d44" if s >= 0 else "#b23a48" for s in sums])
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_title("What each month left over")
    axes.tick_params(axis="x", rotation=45)
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    draw(Ledger.read(sys.argv[1]), sys.argv[2])
