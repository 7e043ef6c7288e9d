"""Speed of every method: training, its stages and start, label models, alignment."""

from __future__ import annotations

import statistics

from tabling.common import markdown, read


def speed() -> str:
    """Training speed against the peer."""
    result = read("train_speed")
    rows = []
    for precision, ratio in result["ratio"].items():
        dev = {
            side: [r["dev"] for r in result["runs"] if (r["precision"], r["side"]) == (precision, side)]
            for side in ("likewise", "sentence-transformers")
        }
        rows.append(
            [
                precision,
                f"**{ratio['median']:.2f}×**",
                ", ".join(f"{value:.2f}" for value in ratio["each"]),
                *(f"{sum(values) / len(values):.2f}" for values in dev.values()),
            ]
        )
    return markdown(
        ["precision", "pairs/s ratio", "each turn", "dev, Likewise", "dev, sentence-transformers"], rows
    )


def label_speed() -> str:
    """Training label models by length against random order: ratios of tokens/s, and what is padding."""
    names = {"lstm": "LSTM", "minilm": "MiniLM"}
    sides = {"random": "random, chunks", "random, one piece": "random, one piece"}
    rows = []
    for name, found in read("label-speed")["encoders"].items():
        share = found["padding"]
        speeds = sorted(run["tokens_per_second"] for run in found["runs"] if run["side"] == "length")
        for side, padding in sides.items():
            ratio = found["length_against"][side]
            rows.append(
                [
                    f"{names[name]}, batch {found['batch']}",
                    padding,
                    f"**{ratio['median']:.2f}×**",
                    ", ".join(f"{value:.2f}" for value in ratio["each"]),
                    f"{speeds[0]:,.0f} to {speeds[-1]:,.0f}",
                    f"{share['length, chunks']:.1%}",
                    f"{share[padding]:.1%}",
                ]
            )
    header = ["", "by length against", "ratio", "each turn", "tokens/s by length"]
    return markdown([*header, "padding by length", "padding at random"], rows)


def stage_speed() -> str:
    """Pairs a second of stage 1 from the cache."""
    result = read("parallel_speed")
    rows = [
        [name, f"**{median:,.0f}**", f"{min(result['runs'][name]):,.0f} to {max(result['runs'][name]):,.0f}"]
        for name, median in result["median"].items()
    ]
    return markdown(["form", "pairs/s", "turns"], rows)


def start_speed() -> str:
    """Seconds from the start of a process to its first training step."""
    found = read("start_speed")["seconds"]
    rows = [
        [kind, f"**{seconds['median']:.1f}**", f"{seconds['least']:.1f} to {seconds['most']:.1f}"]
        for kind, seconds in found.items()
    ]
    return markdown(["", "seconds to the first step", "turns"], rows)


def alignment_speed() -> str:
    """Pairs aligned a second by one thread."""
    rows = [
        [
            run["encoder"],
            f"{run['words a text']:.0f}",
            f"**{statistics.median(run['pairs a second']):.0f}**",
            f"{run['pairs a second'][0]:.0f} to {run['pairs a second'][-1]:.0f}",
        ]
        for run in read("alignment-speed")["runs"]
    ]
    return markdown(["encoder", "words a text", "pairs a second", "turns"], rows)
