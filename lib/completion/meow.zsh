_meow_in_sh() {
  emulate -L sh
  _meow_candidates "$@"
}
_meow() {
  local line
  local -a found
  for line in "${(@f)$(_meow_in_sh "${(@)words[1,CURRENT]}")}"; do
    if [[ $line == :files ]]; then
      _files
    elif [[ -n $line ]]; then
      line=${line//:/\\:}
      found+=("${line/$'\t'/:}")
    fi
  done
  _describe meow found
}
if [ "$funcstack[1]" = _meow ]; then
  _meow "$@"
else
  compdef _meow meow
fi
