#!/usr/bin/env bash
# Everything that needs no judgement is done without an agent: what it prints decides how to go on.
set -euo pipefail
if git rev-parse --quiet --verify HEAD > /dev/null 2>&1 && ! git diff --quiet HEAD; then
  echo "<goto input=\"there are changes that nobody has committed\">STOP.md</goto>"
  exit 0
fi
git log --oneline -20 > commits.txt 2>/dev/null || echo "no commits" > commits.txt
echo "<goto>NOTES.md</goto>"
