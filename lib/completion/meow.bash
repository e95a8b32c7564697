_meow() {
  local IFS=$'\n' word=${COMP_WORDS[COMP_CWORD]} line restore=
  local -a found
  # The = of --flag=value is a word of its own.
  [ "$word" = = ] && word=
  case $- in *f*) ;; *) restore=yes ;; esac
  set -f
  found=($(_meow_candidates "${COMP_WORDS[@]:0:COMP_CWORD}" "$word"))
  COMPREPLY=()
  for line in "${found[@]}"; do
    [[ $line == "$word"* ]] && COMPREPLY+=("$line")
  done
  COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
  # The mark for names of files is the last line.
  if [ "$line" = :files ]; then
    [ -n "$word" ] || unset "COMPREPLY[${#COMPREPLY[@]} - 1]"
    COMPREPLY+=($(compgen -f -- "$word"))
    compopt -o filenames 2>/dev/null
  fi
  [ -z "$restore" ] || set +f
}
complete -F _meow meow
