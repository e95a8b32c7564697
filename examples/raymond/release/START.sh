#!/usr/bin/env bash
# Work that needs no judgement needs no agent: the output of this script names the next state.
set -euo pipefail
if git rev-parse --quiet --verify HEAD > /dev/null 2>&1 && ! git diff --quiet HEAD; then
  echo "<goto input=\"there are uncommitted changes\">STOP.md</goto>"
  exit 0
fi
git log --oneline -20 > commits.txt 2>/dev/null || echo "no commits" > commits.txt
echo "<goto>NOTES.md</goto>"
