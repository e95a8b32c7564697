#!/bin/sh
# Stands before git on the PATH of `meow merge`. Counts the calls of git in $KILL_FOLDER, and kills its caller with -9 before or
# after the call $KILL_AT: `7:before`.
PATH=$KILL_PATH
count=$(($(cat "$KILL_FOLDER/count" 2>/dev/null || echo 0) + 1))
echo "$count" >"$KILL_FOLDER/count"
case $KILL_AT in
  "$count:before") kill -9 "$PPID" ;;
  "$count:after")
    git "$@"
    kill -9 "$PPID"
    ;;
  *) exec git "$@" ;;
esac
