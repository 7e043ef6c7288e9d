#!/usr/bin/env bash
# The tables of docs/methods/paraphrase.md on teaching phrases, for one encoder, on a machine with a GPU:
#   LIKEWISE_MODELS=models LIKEWISE_DATA=corpora bash benchmarks/paraphrase.sh minilm 8
# Aligns once, teaches in six ways side by side (about 60 GB of GPU memory for mpnet), then fine-tunes, so many cells
# at a time as the second argument says. What is finished is not done again.
set -euo pipefail
encoder=$1 workers=${2:-4} links=runs/injection
cd "$(dirname "$0")/.."

for part in 1 2; do
  [ -f "$links/links-$part.jsonl.gz" ] || python benchmarks/injection_links.py "$links" --part "$part/2" &
done
wait
for way in both simple sentences phrases phrases-simple binary; do
  [ -d "$LIKEWISE_MODELS/injected-$encoder-$way" ] || python benchmarks/inject.py "$encoder" --ways "$way" \
    --links "$links"/links-*.jsonl.gz --precision bf16 --set stage.0.max_steps=2000 stage.0.evaluate_every=500 \
    --results "$links/$encoder-$way.json" &
done
wait
python benchmarks/inject.py --merge "$links/$encoder"-*.json
likewise experiment benchmarks/experiments/paraphrase-{1k-,,mnli-,qqp-,single-}"$encoder".toml --precision bf16 \
  --workers "$workers" --summary benchmarks/results
python benchmarks/tables.py
