"""Training speed against sentence-transformers' own trainer: same data, model, batch size, precision.

    python benchmarks/train_speed.py --data-dir corpora                 the whole STS-B train, fp32 and bf16
    python benchmarks/train_speed.py --data-dir corpora --pairs 320     a quick look

Both sides train one epoch with cosine MSE at 2e-5, from loaded model to trained model, tokenization
included; the dev Spearman of both is printed beside the speed. Sides take turns, and the ratio of each turn
is reported, because seconds on a shared machine mean nothing across runs.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

import torch

from likewise.data import load_corpus
from likewise.encoders.sentence import load_encoder
from likewise.encoders.vectors import encode_texts
from likewise.evaluation.metrics import spearman
from likewise.kinds.pair_steps import pair_batches
from likewise.methods.pairs import Objective, PairModel
from likewise.records import Record, Relation
from likewise.training.fit import fit
from likewise.training.settings import FitSettings
from likewise.versions import versions

SIMILARITY = Relation.graded("similarity", 0, 5)
BATCH, RATE = 16, 2e-5


def train_likewise(
    records: list[Record], model: str, precision: str, device: str, seed: int
) -> tuple[float, object]:
    """Seconds and the trained encoder."""
    pair_model = PairModel(load_encoder(model, device=device), [Objective(SIMILARITY, "cosine", "mse")])
    settings = FitSettings(
        batch_size=BATCH, learning_rate=RATE, precision=precision, device=device, seed=seed, save_every=10**9
    )
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        prepare = partial(pair_batches, pair_model, records, settings)
        fit(pair_model, prepare, settings=settings, run=Path(folder))
        return time.perf_counter() - started, pair_model.encoder


def train_sentence_transformers(
    records: list[Record], model: str, precision: str, device: str, seed: int
) -> tuple[float, object]:
    """The same with SentenceTransformerTrainer and CosineSimilarityLoss."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    encoder = load_encoder(model, device=device)
    rows = [{"sentence1": r.a, "sentence2": r.b, "score": float(r.values["similarity"]) / 5} for r in records]
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            num_train_epochs=1,
            per_device_train_batch_size=BATCH,
            learning_rate=RATE,
            warmup_steps=0.1,
            weight_decay=0.01,
            bf16=precision == "bf16",
            use_cpu=device == "cpu",
            save_strategy="no",
            eval_strategy="no",
            report_to="none",
            disable_tqdm=True,
            logging_steps=10,
            seed=seed,
        )
        trainer = SentenceTransformerTrainer(
            model=encoder,
            args=arguments,
            train_dataset=Dataset.from_list(rows),
            loss=CosineSimilarityLoss(encoder),
        )
        started = time.perf_counter()
        trainer.train()
        return time.perf_counter() - started, encoder


def dev_score(encoder: object, dev: list[Record]) -> float:
    """Spearman ×100 of the cosine on STS-B dev."""
    u, v = (torch.from_numpy(encode_texts(encoder, [r.texts[side] for r in dev])) for side in (0, 1))
    return 100 * spearman(
        [r.values["similarity"] for r in dev], torch.nn.functional.cosine_similarity(u, v).numpy()
    )


SIDES = {"likewise": train_likewise, "sentence-transformers": train_sentence_transformers}


def main() -> None:
    """Run both sides in turns and write the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", default=None)
    parser.add_argument("--model", default="raw")
    parser.add_argument("--pairs", type=int, default=None, help="about so many pairs, evenly spread")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--precision", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", default=None, help="write JSON here")
    options = parser.parse_args()
    records = load_corpus("stsb", "train", data_dir=options.data_dir)
    records = records[:: max(1, len(records) // (options.pairs or len(records)))]
    dev = load_corpus("stsb", "dev", data_dir=options.data_dir)
    runs = []
    for repeat in range(options.repeats):
        for precision in options.precision:
            order = list(SIDES) if repeat % 2 == 0 else list(SIDES)[::-1]
            for side in order:
                seconds, encoder = SIDES[side](records, options.model, precision, options.device, 1 + repeat)
                runs.append(
                    {
                        "side": side,
                        "precision": precision,
                        "repeat": repeat,
                        "pairs_per_second": len(records) / seconds,
                        "dev": dev_score(encoder, dev),
                    }
                )
                print(runs[-1], flush=True)
                del encoder
                gc.collect()
    summary = {"pairs": len(records), "batch": BATCH, "runs": runs, "ratio": {}, "versions": versions()}
    for precision in options.precision:
        ratios = []
        for repeat in range(options.repeats):
            speed = {
                r["side"]: r["pairs_per_second"]
                for r in runs
                if r["repeat"] == repeat and r["precision"] == precision
            }
            ratios.append(speed["likewise"] / speed["sentence-transformers"])
        summary["ratio"][precision] = {"each": ratios, "median": statistics.median(ratios)}
        print(f"{precision}: likewise trains {statistics.median(ratios):.2f}× as many pairs/s {ratios}")
    if options.output:
        Path(options.output).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
