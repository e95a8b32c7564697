# Prints what may follow on a command line of meow: lines VALUE, or VALUE<TAB>DESCRIPTION. The line :files stands for the names of
# files. POSIX shell, for every shell that completes. Starts at most one process. `meow completion` adds the functions _meow_commands,
# _meow_flags, _meow_value, _meow_argument and _meow_built_in, which know the commands.

# Sets _meow_at to the folder that contains .meow, which is found as meow finds it.
_meow_project() {
  _meow_at=$PWD
  case $PWD/ in
    ?*/.meow/worktrees/?*/*) _meow_at=${PWD%/.meow/worktrees/*} ;;
  esac
  until [ -d "$_meow_at/.meow" ]; do
    [ "$_meow_at" != "$HOME" ] || return 1
    _meow_at=${_meow_at%/*}
    [ -n "$_meow_at" ] && [ "$_meow_at" != "$HOME" ] || return 1
  done
}

# Runs whose ids begin with $1.
_meow_runs() {
  set -- "$_meow_at/.meow/workflows/$1"*/journal.jsonl
  [ -e "$1" ] || return 0
  printf '%s\n' "$@" | sed -e 's,/journal\.jsonl$,,' -e 's,.*/,,'
}

# Sets _meow_file to the state file of a run, by its id or the beginning of it.
_meow_state() {
  [ -n "$1" ] || return 1
  for _meow_file in "$_meow_at/.meow/workflows/$1.yaml" "$_meow_at/.meow/workflows/$1"*.yaml; do
    [ -r "$_meow_file" ] && return 0
  done
  return 1
}

# Names in the section $2 of the state file of the run $1, and at least those that begin with $3.
_meow_section() {
  _meow_state "$1" || return 0
  _meow_start=$3
  # Each of these characters matches itself in a pattern.
  case $3 in
    *[!A-Za-z0-9_.#-]*) _meow_start='' ;;
  esac
  sed -n -e "/^$2:/,/^[a-z]/!d" -e '/^  [^ ]/!d' -e "s/^  \"\($_meow_start.*\)\":\$/\1/p" -e t \
    -e "s/^  \($_meow_start.*\):\$/\1/p" "$_meow_file"
}

# Open gates of the run $1.
_meow_gates() {
  _meow_state "$1" || return 0
  while IFS= read -r _meow_line; do
    case $_meow_line in
      gates:*) ;;
      steps:*) return 0 ;;
      *) continue ;;
    esac
    _meow_mark='{"id": "'
    while :; do
      _meow_rest=${_meow_line#*"$_meow_mark"}
      [ "$_meow_rest" != "$_meow_line" ] || return 0
      printf '%s\n' "${_meow_rest%%\"*}"
      _meow_line=$_meow_rest
    done
  done <"$_meow_file"
}

# Workflows that are found by their name alone.
_meow_templates() {
  for _meow_file in "$_meow_at"/.meow/templates/* "$_meow_at"/.meow/workflows/*.toml \
    "$HOME"/.meow/templates/* "$HOME"/.meow/workflows/*.toml; do
    [ -e "$_meow_file" ] || continue
    _meow_file=${_meow_file##*/}
    case $_meow_file in
      *.test.toml | *.sim.toml) continue ;;
    esac
    _meow_file=${_meow_file%.toml}
    printf '%s\n' "${_meow_file%.meow}"
  done
}

_meow_adapters() {
  _meow_built_in
  for _meow_file in "$_meow_at"/.meow/adapters/*/adapter.toml "$HOME"/.meow/adapters/*/adapter.toml; do
    [ -e "$_meow_file" ] || continue
    _meow_file=${_meow_file%/*}
    printf '%s\n' "${_meow_file##*/}"
  done
}

# Candidates for the last word of a command line: meow COMMAND … WORD.
_meow_candidates() {
  set +f
  shift
  if [ $# -le 1 ]; then
    case $1 in
      -*) printf '%s\n' --help --version ;;
      *) _meow_commands ;;
    esac
    return 0
  fi
  _meow_command=$1 _meow_number=1 _meow_run='' _meow_kind='' _meow_flag='' _meow_ended=''
  shift
  while [ $# -gt 1 ]; do
    # bash makes a word of the = in --flag=value.
    if [ -n "$_meow_flag" ] && [ "$1" = = ]; then
      :
    elif [ -n "$_meow_flag" ]; then
      _meow_flag=''
    else
      case $_meow_ended$1 in
        --) _meow_ended=yes ;;
        --*=*) ;;
        -?*) if _meow_value "$_meow_command" "$1"; then _meow_flag=$1; fi ;;
        *)
          if [ "$_meow_number" -eq 1 ]; then _meow_run=$1; fi
          _meow_number=$((_meow_number + 1))
          ;;
      esac
    fi
    shift
  done
  _meow_project || _meow_at=/dev/null
  if [ -n "$_meow_flag" ]; then
    _meow_value "$_meow_command" "$_meow_flag"
    _meow_values "$1"
    return 0
  fi
  case $_meow_ended$1 in
    --*=*)
      _meow_flag=${1%%=*}
      if _meow_value "$_meow_command" "$_meow_flag"; then
        _meow_values "${1#*=}" | while IFS= read -r _meow_line; do printf '%s=%s\n' "$_meow_flag" "$_meow_line"; done
      fi
      ;;
    -*) _meow_flags "$_meow_command" ;;
    *)
      _meow_argument "$_meow_command" "$_meow_number"
      _meow_values "$1"
      ;;
  esac
}

# Values of the kind _meow_kind; $1 is the beginning of the value.
_meow_values() {
  case $_meow_kind in
    run) _meow_runs "$1" ;;
    step) _meow_section "$_meow_run" steps "$1" ;;
    agent) _meow_section "$_meow_run" agents "$1" ;;
    gate) _meow_gates "$_meow_run" ;;
    workflow)
      _meow_templates
      echo :files
      ;;
    graph)
      _meow_runs "$1"
      _meow_templates
      echo :files
      ;;
    files) echo :files ;;
    command) _meow_commands ;;
    adapter) _meow_adapters ;;
    words*)
      _meow_kind="${_meow_kind#words } "
      while [ -n "$_meow_kind" ]; do
        printf '%s\n' "${_meow_kind%% *}"
        _meow_kind=${_meow_kind#* }
      done
      ;;
  esac
}
