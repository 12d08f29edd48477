"""bench_wheel_table.py RESULTS TARGET REPETITIONS: the wheel's table from wheel_bench's JSON lines.

Writes between the markers below in TARGET, or all of TARGET if it has none. Used by scripts/bench-wheel.
"""
import collections
import json
import os
import statistics
import sys

BEGIN = "<!-- wheel: made by scripts/bench-wheel -->"
END = "<!-- wheel: end -->"
STRUCTURES = ["wheel", "wheel4k", "heap4", "priority_queue", "multimap", "libevent", "libuv"]
WORKLOADS = ["insert", "insert_warm", "cancel", "cancel_batch", "reschedule", "reschedule_batch",
             "drain", "mixed", "mixed_batch", "life90"]
# Measured with Go's container/heap and a mutex on the reference machine, as in the write-up.
GO_RANDOM_NS = 2009.0
GO_PUBLISHED_NS = 476.8


def read(path):
    cells = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            if "error_message" in case:
                sys.exit(f"{case['name']}: {case['error_message']}")
            name = case["name"].split("/iterations")[0]
            for counter in ("ns", "bytes", "worst_us", "p99999_us", "p9999_us"):
                if counter in case:
                    cells[name][counter].append(case[counter])
    return {name: {counter: statistics.median(values) for counter, values in counters.items()}
            for name, counters in cells.items()}


def figure(cells, name, counter="ns"):
    return cells.get(name, {}).get(counter)


def show(value):
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def goals(cells):
    """(what, measured, goal, reached) for every goal whose figures are there."""
    found = []

    def check(what, value, limit, unit, at_most=True):
        if value is None or limit is None:
            return
        reached = value <= limit if at_most else value >= limit
        word = "at most" if at_most else "at least"
        found.append((what, f"{show(value)} {unit}", f"{word} {show(limit)} {unit}",
                      "reached" if reached else "**not reached**"))

    def ratio(above, below):
        return above / below if above is not None and below else None

    floor = figure(cells, "floor/rmw64/10M")
    for workload in ("insert", "cancel"):
        check(f"{workload}, 10 M, against one random access ({show(floor)} ns)",
              ratio(figure(cells, f"wheel/{workload}/10M"), floor), 4, "times")
    check("cancel, 10 M, ahead of the 4-ary heap",
          ratio(figure(cells, "heap4/cancel/10M"), figure(cells, "wheel/cancel/10M")), 2, "times", False)
    heaps = [figure(cells, f"{heap}/drain/10M") for heap in ("heap4", "priority_queue")]
    heaps = [value for value in heaps if value]
    check("advance and pop, 10 M, faster than the best heap",
          ratio(min(heaps) if heaps else None, figure(cells, "wheel/drain/10M")), 5, "times", False)
    check("advance and pop, 10 M against 1 M",
          ratio(figure(cells, "wheel/drain/10M"), figure(cells, "wheel/drain/1M")), 1, "times")
    check("memory, 10 M", figure(cells, "wheel/insert/10M", "bytes"), 26, "bytes")
    for size, limit in (("1M", 100), ("10M", 300)):
        for mix in ("", "/exp", "/far"):
            check(f"worst step of 1 ms, {size}{mix.replace('/', ', ')}",
                  figure(cells, f"wheel/steps/{size}{mix}", "worst_us"), limit, "µs")
    for size in ("1M", "10M"):
        check(f"memory with 90 % cancelled against none, {size}",
              ratio(figure(cells, f"wheel/life90/{size}", "bytes"),
                    figure(cells, f"wheel/insert/{size}", "bytes")), 2, "times")
    check("mixed load in batches, 1 M", figure(cells, "wheel/mixed_batch/1M"), 1000 / 30, "ns")
    check("cancel in batches, 1 M (stretch 20)", figure(cells, "wheel/cancel_batch/1M"), 35, "ns")
    check("reschedule in batches, 1 M", figure(cells, "wheel/reschedule_batch/1M"), 40, "ns")
    check("push and take, 2.3 M random, faster than the Go heap",
          ratio(GO_RANDOM_NS, figure(cells, "wheel/push_take/2.3M")), 10, "times", False)
    return found


def section(cells, repetitions):
    lines = [BEGIN, "## The timing wheel and its peers", "",
             f"Medians of {repetitions} repetitions, CPU time of one thread, ns per operation; made by",
             "`scripts/bench-wheel` on a virtual machine with 2 processors. Quote ratios. What each case does is",
             "said in `tests/bench/wheel_bench/workloads.h`; `wheel4k` is the wheel without huge pages.", ""]
    lines += ["### Goals", ""]
    lines += table(["what", "measured", "goal", ""], goals(cells))
    for size in ("1M", "10M", "1M/exp"):
        rows = []
        for structure in STRUCTURES:
            values = [figure(cells, f"{structure}/{workload}/{size}") for workload in WORKLOADS]
            if any(value is not None for value in values):
                rows.append([structure] + [show(value) for value in values] +
                            [show(figure(cells, f"{structure}/insert/{size}", "bytes")),
                             show(figure(cells, f"{structure}/life90/{size}", "bytes"))])
        if rows:
            names = {"1M": "1 M timers, uniform delays up to 1 h", "10M": "10 M timers, uniform delays",
                     "1M/exp": "1 M timers, exponential delays, mean 30 min"}
            lines += [f"### {names[size]}", ""]
            lines += table(["", *[w.replace("_", " ") for w in WORKLOADS], "B/timer", "B/live at 90 %"], rows)
    rows = [[name.split("/steps/")[0], name.split("/steps/")[1]] +
            [show(cells[name].get(c)) for c in ("p9999_us", "p99999_us", "worst_us")]
            for name in cells if "/steps/" in name]
    lines += ["### One call per millisecond, µs", ""]
    lines += table(["", "load", "p99.99", "p99.999", "worst"], rows)
    rows = [[name, show(cells[name]["ns"])] for name in cells
            if name.startswith(("floor/", "slots/")) or "/push_take/" in name]
    rows.append(["Go container/heap, 2.3 M, random deadlines (measured earlier, same kind of machine)",
                 show(GO_RANDOM_NS)])
    rows.append(["Go delay queue, 2.3 M, rising deadlines (as published)", show(GO_PUBLISHED_NS)])
    lines += ["### Floor, order of slots, push and take", ""]
    lines += table(["", "ns"], rows)
    return "\n".join(lines + [END, ""])


def main():
    results, target, repetitions = sys.argv[1:4]
    text = section(read(results), repetitions)
    old = ""
    if target != "/dev/stdout" and os.path.exists(target):
        with open(target, encoding="utf-8") as file:
            old = file.read()
    if BEGIN in old and END in old:
        text = old[:old.index(BEGIN)] + text.rstrip("\n") + old[old.index(END) + len(END):]
    elif old:
        text = old.rstrip("\n") + "\n\n" + text
    elif target != "/dev/stdout":
        text = "# Benchmarks\n\n" + text
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


main()
