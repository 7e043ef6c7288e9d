"""Several relations by one model: tests, cost, advice, described relations, the README's table."""

from __future__ import annotations

from tabling.baselines import encoder_of, free_row
from tabling.common import markdown, printed, published_rows, read


def tests(name: str) -> str:
    """Every setting against the baseline: difference, interval, effect, corrected p."""
    from likewise.evaluation.tables import p_value

    result = read(name)
    rows = [
        [
            c["start"] or "–",
            c["setting"],
            c["column"],
            f"{c['difference']:+.2f}",
            f"{c['interval'][0]:+.2f} to {c['interval'][1]:+.2f}",
            f"{c['effect']:+.2f}",
            p_value(c["p_holm"]),
        ]
        for c in result["comparisons"]
    ]
    header = ["encoder", f"{result['baseline']} minus", "relation", "difference", "95 % interval", "Hedges g"]
    return markdown([*header, "p (Holm)"], rows)


def cost(name: str) -> str:
    """What the settings cost against one relation alone."""
    rows = [
        [c["setting"], str(c["models"]), f"{c['steps']:,}", f"{c['seconds']:.0f}", f"**{c['ratio']:.2f}×**"]
        for c in read(name)["costs"]
    ]
    return markdown(["setting", "models", "steps", "seconds", "against one relation alone"], rows)


def advice(name: str) -> str:
    """Joint or single for each relation, and why."""
    rows = [
        [a["start"] or "–", a["column"], f"**{a['choice']}**", f"{a['difference']:+.2f}", a["reason"]]
        for a in read(name)["advice"]
    ]
    return markdown(["encoder", "relation", "choose", "joint − single", "because"], rows)


def relations() -> str:
    """The README's table: several relations by one model, below the row that needs no training."""
    families = ("relations-activity", "relations-sick")
    best = published_rows("relations-best")
    rows, columns = [], []
    for encoder in ("minilm", "mpnet"):
        free, trained, seeds, columns, ways = [], [], [], [], []
        for family in families:
            name = f"{family}-{encoder}"
            result = read(name)
            joint = next(s for s in result["settings"] if s["setting"] == "multi-label")
            label, cells = free_row(result["suite"], joint["metrics"], encoder_of(name, joint["start"]))
            ways += [way for way in label.partition(": ")[2].split(", ") if way not in ways]
            columns += joint["metrics"]
            free += cells
            trained += [printed(joint, column) for column in joint["metrics"]]
            seeds.append(str(len(joint["seeds"])))
        rows.append([joint["start"], f"none: {', '.join(ways)}", *free, "–"])
        rows.append([joint["start"], "one model per data set", *trained, ", ".join(seeds)])
    published = [value for family in families for value in best[family]]
    rows.append(["–", "best in Zhang, Wilson & Mihalcea 2018", *published, ""])
    return markdown(["encoder", "training", *columns, "seeds"], rows)


# Settings as the results name them, and as the table does.
DESCRIBED = {
    "raw cosine": "no training: raw cosine",
    "nearest known, chosen on dev": "the nearest known relation, chosen on dev",
    "zero": "zero update",
    "zero, another question": "zero update, unrelated question",
    "hot": "hot update",
    "hot, 10% rehearsed": "hot update, 10% rehearsed",
    "own head": "a head of its own, 50 pairs",
    "supervised, described": "all training pairs, described head",
    "supervised, own heads": "all training pairs, a head per relation",
}
LEFT_OUT = {"pac": "perceived actor congruence", "ma": "motivational alignment"}


def described() -> str:
    """A relation that was left out, then described: Spearman on it, and on the others after the update."""
    left_out = read("relations-described")["encoders"]["minilm"]["left_out"]
    rows = []
    for name, shown in DESCRIBED.items():
        row = [shown]
        for about in left_out.values():
            found = about["settings"][name]
            spread = "" if found["interval"] is None else f" ± {(found['interval'][1] - found['mean']):.3f}"
            kept = about["known"].get({"zero": "known"}.get(name, name))
            row += [f"{found['mean']:.3f}{spread}".replace("0.", "."), "" if kept is None else known(kept)]
        rows.append(row)
    header = [part for name in left_out for part in (f"{LEFT_OUT[name]} left out", "the other three")]
    return markdown(["answered by", *header], rows)


def known(values: dict[str, float]) -> str:
    """Spearman of the relations that were there before, in their order."""
    return " / ".join(f"{value:.3f}".replace("0.", ".") for value in values.values())
