#!/bin/sh
# Builds the file system of the agent's image: Bun, the C library that it is linked against, and the agent's
# bundle, split into parts that are loaded on demand. A single executable compiled by Bun uses 4 MiB more memory.
# Usage: agent-root.sh DIST OUT, with `bun` on the path.
set -eu
dist=$1
out=$2
mkdir -p "$out"
bun build --minify --splitting --target=bun "$dist/agent.js" --outdir "$out/app"
cp "$(readlink -f "$(command -v bun)")" "$out/bun"
for library in $(ldd "$out/bun" | grep -o '/lib[^ ]*'); do
  mkdir -p "$out$(dirname "$library")"
  cp -L "$library" "$out$library"
done
