# `meow event` without starting a program: read by bin/meow, in the shell that is running already, where MEOW_INBOX names
# the inbox of a run. Agents call it from hooks, at every use of a tool. It writes one file, by what is built into the
# shell alone, and leaves. What it does not understand, and what is so large that it may be refused, it leaves to the
# program, which explains: then it just returns. (Quoted as JSON, a character takes six at most.)
#
# src/ipc/event-file.ts reads the file and says what is in it. The name is this process's id; where a file of that name is
# still to be read, a number is put behind it. The file is made exclusively, so that no message takes the place of another.

meow_event() {
  case ${1-} in
  '' | -*) return ;;
  esac
  case $1 in
  *[[:cntrl:]]*) return ;;
  esac
  [ ${#1} -le 128 ] && [ ${#MEOW_AGENT} -le 128 ] || return
  meow_rest=0
  meow_size=0
  for meow_arg; do
    meow_size=$((meow_size + ${#meow_arg}))
    case $meow_rest$meow_arg in
    0*) meow_rest=1 ;;
    1--data) meow_rest=2 ;;
    1--data=__proto__=* | 2__proto__=*) return ;;
    1--data=?*=*) ;;
    2?*=*) meow_rest=1 ;;
    *) return ;;
    esac
  done
  [ "$meow_rest" = 1 ] && [ "$meow_size" -le 10000 ] || return

  umask 077
  set -C
  meow_try=
  while :; do
    meow_file=$MEOW_INBOX/$$$meow_try.event
    # What goes wrong is not for the agent's eyes: the program will say it better.
    if { printf '' >"$meow_file"; } 2>/dev/null; then
      { printf '%s\0' meow-event-1 $(($# + 2)) "${MEOW_WORKFLOW-}" "${MEOW_AGENT-}" "$@" >>"$meow_file"; } 2>/dev/null &&
        exit 0
      break
    fi
    [ -e "$meow_file" ] && [ "$meow_try" != .99 ] || break
    meow_try=.$((${meow_try#.} + 1))
  done
  set +C
}

shift
meow_event "$@"
set -- event "$@"
