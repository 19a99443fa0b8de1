#!/bin/sh
# Draws the pictures of docs/gallery.md and the one that opens the README: from the shipped policies, and from docs/gallery/*.json, what
# `collwise bench --json` printed on the emulated grid, if that is there.
set -eu
cd "$(dirname "$0")/.."
collwise=${COLLWISE:-target/release/collwise}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# what is measured of a simulated platform is measured again: samples are not shipped
"$collwise" tune --platform platforms/ccgrid2007.toml --samples "$work/samples.jsonl" -o "$work/policy.toml" >/dev/null
set -- report policies/ccgrid2007.toml --samples "$work/samples.jsonl" --app examples/reports/*.mpiP --against policies/ccgrid2007-smpi.toml
bench=""
for result in docs/gallery/*.json; do
    [ -e "$result" ] && bench="$bench --bench $result"
done
# shellcheck disable=SC2086 # options with their words
"$collwise" "$@" $bench -o "$work/page.html" --svg "$work/grid"
"$collwise" report policies/hcl16.toml -o "$work/hcl16.html" --svg "$work/hcl16"

mkdir -p docs/gallery
rm -f docs/gallery/*.svg
for picture in latencies links model-1 model-1-5 decisions-bcast decisions-allreduce predicted-measured regret tree-root0-65536 gantt-root0-65536 \
    gantt-root0-1048576 application-1-wall application-1-parts; do
    cp "$work/grid/$picture.svg" "docs/gallery/$picture.svg"
done
for picture in "$work"/grid/wins-*.svg; do
    [ ! -e "$picture" ] || cp "$picture" docs/gallery/
done
cp "$work/hcl16/model-1.svg" docs/gallery/hcl16-model-1.svg
cp "$work/hcl16/decisions-bcast.svg" docs/gallery/hcl16-decisions-bcast.svg
cp "$work/grid/gantt-root0-65536.svg" docs/report.svg
