"""The compiled engine's benchmarks: `make bench-engine`, about ten minutes; with --quick under two.

Each part prints a table, and all write to results/engine.json in the folder above. What is compared is measured in one
process, in turn, several rounds: between processes and moments a shared machine differs more than the contestants do.
"""

from __future__ import annotations

import argparse
import os

from benchmarks.engine import growth, memory, price, start
from benchmarks.engine.report import say

PARTS = {"price": price.main, "growth": growth.main, "start": start.main, "memory": memory.main}

BUSY = 0.7


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-engine", description="Price, growth, start and memory of a step.")
    parser.add_argument("--quick", action="store_true", help="smaller and fewer, in under two minutes")
    parser.add_argument("--only", default=",".join(PARTS), help="some of %(default)s (the default)")
    options = parser.parse_args()
    parts = options.only.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--only takes some of {','.join(PARTS)}, got {','.join(sorted(unknown))}")
    if os.getloadavg()[0] > BUSY:
        say(f"The load average is {os.getloadavg()[0]:.1f}: other work will disturb what is measured.")
    for part in parts:
        PARTS[part](options.quick)


if __name__ == "__main__":
    main()
