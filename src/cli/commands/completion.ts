// `meow completion`: prints the script that completes the command line in a shell. A script contains the commands and flags, and finds run ids, steps, agents and
// workflows in the files of the project, so that completing starts no program of ours.

import { schemaNames } from '../../app/schemas.ts';
import { UsageError } from '../../base/errors.ts';
import { EXIT, print } from '../output.ts';

export interface CompletedCommand {
  readonly name: string;
  readonly description: string;
  readonly flags: readonly string[];
}

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

export function completion(commands: readonly CompletedCommand[], wanted: string): number {
  const shell = SHELLS.find((each) => each === wanted);
  if (shell === undefined) {
    throw new UsageError(`there is no completion for ${JSON.stringify(wanted)}`, `it is one of ${SHELLS.join(', ')}`);
  }
  print(completionScript(shell, commands));
  return EXIT.done;
}

function completionScript(shell: Shell, commands: readonly CompletedCommand[]): string {
  switch (shell) {
    case 'bash':
      return bashScript(commands);
    case 'zsh':
      return `#compdef meow\nautoload -U +X bashcompinit && bashcompinit\n${bashScript(commands)}`;
    case 'fish':
      return fishScript(commands);
  }
}

/** Commands whose first argument is a run. */
const OF_RUNS = /^(?:resume|fork|stop|status|show|trace|logs|why|approve|reject|answer|attach|diff|gc)$/;
/** Commands whose second argument is a step, or an agent. */
const OF_STEPS = /^(?:show|logs|why)$/;
const OF_AGENTS = /^(?:attach)$/;

/** Functions that list what the project has, in POSIX shell. The state file of a run names its steps and agents. */
const LISTS = String.raw`
_meow_folder() {
  _meow_at=$PWD
  while [ "$_meow_at" != / ] && [ ! -d "$_meow_at/.meow" ]; do _meow_at=$(dirname "$_meow_at"); done
  printf '%s\n' "$_meow_at/.meow"
}
_meow_runs() {
  for _meow_file in "$(_meow_folder)"/workflows/*/journal.jsonl; do
    [ -e "$_meow_file" ] && basename "$(dirname "$_meow_file")"
  done
}
_meow_section() {
  sed -n "/^$2:/,/^[a-z]/s/^  \([^ ].*\):\$/\1/p" "$(_meow_folder)/workflows/$1.yaml" 2>/dev/null | tr -d '"'
}
_meow_templates() {
  for _meow_file in "$(_meow_folder)"/templates/*.toml; do
    [ -e "$_meow_file" ] && basename "$_meow_file" | sed 's/\.meow\.toml$//; s/\.toml$//'
  done
}
`.trim();

function bashScript(commands: readonly CompletedCommand[]): string {
  const schemas = schemaNames().map(({ name }) => name);
  const names = commands.map(({ name }) => name);
  const flags = commands.map(({ name, flags: own }) => `    ${name}) printf '%s\\n' ${own.join(' ')} ;;`);
  const listed = (pattern: RegExp): string => names.filter((name) => pattern.test(name)).join('|');
  return `${LISTS}
_meow_flags() {
  case $1 in
${flags.join('\n')}
  esac
}
_meow() {
  local word=\${COMP_WORDS[COMP_CWORD]} command=\${COMP_WORDS[1]} run=\${COMP_WORDS[2]} found=
  if [ "$COMP_CWORD" -eq 1 ]; then
    found="${names.join(' ')}"
  elif [[ $word == -* ]]; then
    found=$(_meow_flags "$command")
  elif [ "$COMP_CWORD" -eq 2 ]; then
    case $command in
      ${listed(OF_RUNS)}) found=$(_meow_runs) ;;
      run|validate|graph|prove) found=$(_meow_templates) ;;
      help) found="${names.join(' ')}" ;;
      completion) found="${SHELLS.join(' ')}" ;;
      schema) found="${schemas.join(' ')}" ;;
    esac
  elif [ "$COMP_CWORD" -eq 3 ]; then
    case $command in
      ${listed(OF_STEPS)}) found=$(_meow_section "$run" steps) ;;
      ${listed(OF_AGENTS)}) found=$(_meow_section "$run" agents) ;;
      diff) found=$(_meow_runs) ;;
    esac
  fi
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(printf '%s\\n' $(IFS=$' \\n'; printf '%s\\n' $found))" -- "$word"))
}
complete -o default -F _meow meow
`;
}

function fishScript(commands: readonly CompletedCommand[]): string {
  const schemas = schemaNames().map(({ name }) => name);
  const names = commands.map(({ name }) => name).join(' ');
  const lines = commands.flatMap(({ name, description, flags }) => [
    `complete -c meow -n "not __fish_seen_subcommand_from ${names}" -f -a ${name} -d ${quoted(description)}`,
    ...flags
      .filter((flag) => flag.startsWith('--'))
      .map((flag) => `complete -c meow -n "__fish_seen_subcommand_from ${name}" -l ${flag.slice(2)}`),
  ]);
  const ofRuns = commands.map(({ name }) => name).filter((name) => OF_RUNS.test(name));
  return `function __meow_runs
  set -l at $PWD
  while test $at != / -a ! -d $at/.meow
    set at (dirname $at)
  end
  for file in $at/.meow/workflows/*/journal.jsonl
    basename (dirname $file)
  end
end
${lines.join('\n')}
complete -c meow -n "__fish_seen_subcommand_from ${ofRuns.join(' ')}" -f -a "(__meow_runs)"
complete -c meow -n "__fish_seen_subcommand_from completion" -f -a "${SHELLS.join(' ')}"
complete -c meow -n "__fish_seen_subcommand_from schema" -f -a "${schemas.join(' ')}"
`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`\'`)}'`;
}
