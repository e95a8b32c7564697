#!/bin/sh
# Polls the folder inbox, and starts a worker for each file in it. It uses no agent while there is nothing to do, and
# continues until somebody creates a file called stop.
mkdir -p inbox taken
while :; do
  for file in inbox/*; do
    [ -e "$file" ] || continue
    name=$(basename "$file")
    mv "$file" "taken/$name"
    echo "<print>found $name</print>"
    echo "<fork next=\"START.sh\" issue=\"$name\">WORKER.md</fork>"
    exit 0
  done
  if [ -e stop ]; then
    echo "<result>stopped</result>"
    exit 0
  fi
  sleep 0.2
done
