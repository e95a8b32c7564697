#!/bin/sh
# hook.sh EVENT: what an agent's own hooks call, at every prompt, tool and stop, with a text about it on stdin. Each text is
# left as a new file in the folder that MEOW_HOOKS names, whole from the moment it is there: SECONDS.HUNDREDTHS-PID-EVENT.json,
# with the time since the machine was started where that can be had for nothing, else the date; their names sort by time.
# For the event Stop it prints before what keeps an agent going that has stopped in the middle of its step: whoever sees the
# file takes the agent for free, and what is asked for then is about its next step.
#
# It never fails, and without such a folder it does nothing: a hook that was left behind does no harm. Only a Stop is worth
# a start of Node.

meow_hook() {
  case ${MEOW_HOOKS-} in
  /*) ;;
  *) return 1 ;;
  esac
  case ${1-} in
  '' | *[!A-Za-z0-9_-]*) return 1 ;;
  esac
  [ -d "$MEOW_HOOKS" ] || return 1

  { read -r meow_time meow_rest </proc/uptime; } 2>/dev/null || meow_time=$(date +%s)
  meow_seconds=0000000000${meow_time%%.*}
  meow_pid=0000000000$$
  # The last ten characters of each.
  meow_name=${meow_seconds#"${meow_seconds%??????????}"}${meow_time#"${meow_time%%.*}"}
  meow_name=$meow_name-${meow_pid#"${meow_pid%??????????}"}-$1.json

  umask 077
  if cat >"$MEOW_HOOKS/.$meow_name"; then
    [ "$1" != Stop ] || "${0%/*}/meow" prime --format hook </dev/null
    mv -f "$MEOW_HOOKS/.$meow_name" "$MEOW_HOOKS/$meow_name" && return 0
  fi
  rm -f "$MEOW_HOOKS/.$meow_name"
  return 1
}

# Who writes to a reader that does not read may be stopped for it.
meow_hook "${1-}" 2>/dev/null || cat >/dev/null 2>&1
exit 0
