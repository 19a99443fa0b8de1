#!/bin/sh
# Draws the pictures of docs/gallery.md and the one that opens the README: from the shipped policies, and from docs/gallery/grid, the policy that was
# tuned on the emulated grid, what `collwise bench --json` printed there, and what ranks wrote there with COLLWISE_TRACE.
set -eu
cd "$(dirname "$0")/.."
collwise=${COLLWISE:-target/release/collwise}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# what is measured of a simulated platform is measured again: samples are not shipped
"$collwise" tune --platform platforms/ccgrid2007.toml --samples "$work/samples.jsonl" -o "$work/policy.toml" >/dev/null
set -- report policies/ccgrid2007.toml --samples "$work/samples.jsonl" --app examples/reports/*.mpiP --against policies/ccgrid2007-smpi.toml
"$collwise" "$@" -o "$work/page.html" --svg "$work/simulated"
grid=docs/gallery/grid
"$collwise" report $grid/policy.toml --bench $grid/site-by-site.json --bench $grid/round-robin.json --trace $grid/traces -o "$work/grid.html" --svg "$work/grid"
"$collwise" report policies/hcl16.toml -o "$work/hcl16.html" --svg "$work/hcl16"

mkdir -p docs/gallery
rm -f docs/gallery/*.svg
for picture in latencies links model-1 model-1-6 decisions-bcast decisions-allreduce predicted-measured regret tree-bcast-root0-65536 gantt-bcast-root0-65536 \
    gantt-bcast-root0-524288 tree-allreduce-65536 gantt-allreduce-65536 application-1-wall application-1-parts; do
    cp "$work/simulated/$picture.svg" "docs/gallery/$picture.svg"
done
cp "$work/grid/wins-1-root0.svg" docs/gallery/wins-site-by-site.svg
cp "$work/grid/wins-2-root0.svg" docs/gallery/wins-round-robin.svg
for picture in gantt-bcast-root0-262144 traced-bcast-root0-262144; do
    cp "$work/grid/$picture.svg" "docs/gallery/grid-$picture.svg"
done
cp "$work/hcl16/model-1.svg" docs/gallery/hcl16-model-1.svg
cp "$work/hcl16/decisions-bcast.svg" docs/gallery/hcl16-decisions-bcast.svg
cp "$work/simulated/gantt-bcast-root0-65536.svg" docs/report.svg
