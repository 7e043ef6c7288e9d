#!/usr/bin/env bash
# The tables of docs/methods/paraphrase.md on teaching phrases, for one encoder, on a machine with a GPU:
#   LIKEWISE_MODELS=models LIKEWISE_DATA=corpora bash benchmarks/paraphrase.sh minilm 8
# Aligns once, teaches four checkpoints at a time (about 60 GB of GPU memory for mpnet), then fine-tunes, so many cells
# at a time as the second argument says. What is finished is not done again.
set -euo pipefail
encoder=$1 workers=${2:-4} links=runs/injection
cd "$(dirname "$0")/.."

for part in 1 2; do
  [ -f "$links/links-$part.jsonl.gz" ] || python benchmarks/injection_links.py "$links" --part "$part/2" &
done
wait

teach() {
  local way=$1 seed=$2 noise=${3:-} name=injected-$encoder-$1
  [ "$seed" = 1 ] || name=$name-$seed
  [ -z "$noise" ] || name=$name-$noise
  [ -d "$LIKEWISE_MODELS/$name" ] || python benchmarks/inject.py "$encoder" --ways "$way" --seed "$seed" \
    ${noise:+--suffix "$noise"} --links "$links/$noise"/links-*.jsonl.gz --precision bf16 --set stage.0.max_steps=2000 stage.0.evaluate_every=500 \
    --results "$links/$name.json"
}
for share in 0.5:50 1:100; do
  [ -d "$links/noise${share#*:}" ] || python benchmarks/noise_links.py "$links"/links-*.jsonl.gz --share "${share%:*}" \
    --output "$links/noise${share#*:}"
done
towers=(towers towers-elaborate towers-anchor30 towers-slow towers-phrases)
for run in {both,near,simple,sentences,phrases,phrases-simple,binary}:1 both:2 both:3 both:1:noise50 {both,phrases}:1:noise100 \
  "${towers[@]/%/:1}"; do
  while [ "$(jobs -rp | wc -l)" -ge 4 ]; do wait -n; done
  IFS=: read -r way seed noise <<< "$run"
  teach "$way" "$seed" "$noise" &
done
wait
python benchmarks/inject.py --merge "$links/injected-$encoder"-*.json
python benchmarks/two_towers.py "$encoder" "${towers[@]/#/injected-$encoder-}"
likewise experiment benchmarks/experiments/paraphrase-{1k-,epochs-,checkpoints-,noise-,targets-,,mnli-,qqp-,single-}"$encoder".toml \
  --precision bf16 --workers "$workers" --summary benchmarks/results --overwrite
python benchmarks/tables.py
