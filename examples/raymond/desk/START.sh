#!/bin/sh
# Each line of orders.txt names a workflow and its input. All of them start at once, in this run, and continue
# independently.
while read -r workflow order; do
  case $workflow in
    feature) echo "<fork-workflow next=\"LOG.md\" input=\"$order\">../review-loop</fork-workflow>" ;;
    question) echo "<fork-workflow next=\"LOG.md\" input=\"$order\">../research</fork-workflow>" ;;
  esac
done < orders.txt
