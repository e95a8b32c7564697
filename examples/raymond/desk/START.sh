#!/bin/sh
# Each line of orders.txt is a workflow and what it is asked for. They all begin at once, in this one run, and each goes on
# by itself.
while read -r workflow order; do
  case $workflow in
    feature) echo "<fork-workflow next=\"LOG.md\" input=\"$order\">../review-loop</fork-workflow>" ;;
    question) echo "<fork-workflow next=\"LOG.md\" input=\"$order\">../research</fork-workflow>" ;;
  esac
done < orders.txt
