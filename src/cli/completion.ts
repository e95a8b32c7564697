// Scripts that complete the command line in a shell. They contain the commands and flags, and find runs, steps, gates, agents and
// workflows in the files of the project, so that completing starts no program of ours. The part that finds candidates is the same
// for all shells, lib/completion/candidates.sh; this file makes the functions that it needs from the commands.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { schemaNames } from '../app/schemas.ts';
import { packageFolder } from '../app/sources.ts';
import { present } from '../base/errors.ts';
import { own } from '../base/json.ts';

export interface CompletedCommand {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly description: string;
  /** Number of its arguments. */
  readonly arguments: number;
  /** The last argument may be repeated. */
  readonly repeats: boolean;
  readonly flags: readonly CompletedFlag[];
}

interface CompletedFlag {
  /** `--follow`, and `-f` if it has a short form. */
  readonly names: readonly string[];
  readonly description: string;
  readonly needsValue: boolean;
}

/** Names that meow knows. */
export interface CompletedNames {
  readonly statuses: readonly string[];
  readonly adapters: readonly string[];
  readonly templates: readonly string[];
}

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

export function completionScript(shell: Shell, commands: readonly CompletedCommand[], names: CompletedNames): string {
  const candidates = `${readScript('candidates.sh')}\n${tables(commands, names)}`;
  const script = readScript(`meow.${shell}`);
  switch (shell) {
    case 'bash':
      return `${candidates}\n${script}`;
    case 'zsh':
      return `#compdef meow\n${candidates}\n${script}`;
    case 'fish': {
      const text = `${candidates}\n_meow_candidates "$@"\n`.replaceAll(/['\\]/g, String.raw`\$&`);
      return `set -g __meow_candidates '${text}'\n${script}`;
    }
  }
}

function readScript(name: string): string {
  return readFileSync(join(packageFolder(), 'lib/completion', name), 'utf8');
}

/** What an argument or the value of a flag is. `words`: fixed ones. */
type Kind =
  | 'run'
  | 'step'
  | 'agent'
  | 'gate'
  | 'workflow'
  /** A workflow or a run. */
  | 'graph'
  | 'files'
  | 'command'
  | 'adapter'
  | 'text'
  | { readonly words: readonly string[] };

function wordsOf(...words: readonly string[]): Kind {
  return { words };
}

const STEP_STATUSES = wordsOf('pending', 'running', 'completing', 'done', 'failed', 'skipped');

/** Arguments of every command. */
const ARGUMENTS: Readonly<Record<string, readonly Kind[]>> = {
  run: ['workflow'],
  resume: ['run'],
  fork: ['run'],
  serve: [],
  worker: [],
  schedule: [wordsOf('add', 'list', 'next', 'remove', 'run', 'pause', 'resume'), 'text', 'text', 'workflow'],
  merge: [wordsOf('offer', 'withdraw'), 'text'],
  stop: ['run'],
  status: ['run'],
  top: [],
  ui: [wordsOf('export'), 'run'],
  list: [],
  cost: ['run'],
  show: ['run', 'step'],
  trace: ['run'],
  agents: [],
  attach: ['run', 'agent'],
  logs: ['run', 'step'],
  why: ['run', 'step'],
  diff: ['run', 'run'],
  init: [],
  validate: ['workflow'],
  schema: [{ words: schemaNames().map(({ name }) => name) }],
  graph: ['graph'],
  test: ['files'],
  plan: ['workflow'],
  prove: ['workflow'],
  adapter: [wordsOf('install', 'list', 'show', 'remove'), 'adapter'],
  fleet: [wordsOf('init', 'role', 'status', 'check', 'restore', 'dev'), wordsOf('viewer', 'operator', 'worker')],
  lsp: [],
  notify: [wordsOf('test')],
  completion: [{ words: SHELLS }],
  doctor: [],
  gc: ['run'],
  export: ['run'],
  import: ['files'],
  report: ['run'],
  gates: [],
  approve: ['run', 'gate'],
  reject: ['run', 'gate'],
  answer: ['run', 'gate', 'text'],
  done: [],
  prime: [],
  'session-id': [],
  event: ['text'],
  'await-event': ['text'],
  'step-status': ['text'],
  'await-approval': ['text'],
  mcp: [],
  help: ['command'],
  version: [],
};

/** Values of flags, also of one command alone: `fork --from`. Those of other flags are not completed. */
function valueKinds({ statuses, templates }: CompletedNames): Readonly<Record<string, Kind>> {
  return {
    '--run': 'run',
    'cost --since': 'text',
    'cost --by': wordsOf('run', 'workflow', 'step', 'agent', 'adapter', 'model', 'day'),
    '--since': 'run',
    'run --resume': 'run',
    'fork --from': 'step',
    'test --from': 'run',
    '--source': 'workflow',
    '--adapter': 'adapter',
    '--permissions': wordsOf('ask', 'edits', 'all'),
    '--language': wordsOf('meow', 'raymond', 'conductor'),
    '--status': { words: statuses },
    'graph --format': wordsOf('text', 'mermaid', 'dot', 'svg', 'json'),
    'prime --format': wordsOf('prompt', 'json', 'hook'),
    '--is': STEP_STATUSES,
    '--is-not': STEP_STATUSES,
    '--template': { words: templates },
    'graph --coverage': 'files',
    '--junit': 'files',
    'merge --worktree': 'files',
    'top --project': 'files',
    'ui --project': 'files',
    'ui --tls-cert': 'files',
    'ui --tls-key': 'files',
    '-o': 'files',
  };
}

function tables(commands: readonly CompletedCommand[], names: CompletedNames): string {
  const values = valueKinds(names);
  const named = commands.flatMap((command) => [command.name, ...command.aliases].map((name) => ({ ...command, name })));
  const flags = commands.map((command) => {
    const lines = command.flags.flatMap(({ names: all, description }) => all.map((name) => line(name, description)));
    return `    ${patternOf(command)}) printf '%s\\n' ${lines.join(' ')} ;;`;
  });
  const valued = commands.flatMap((command) =>
    command.flags
      .filter(({ needsValue }) => needsValue)
      .map(({ names: all }) => {
        const kinds = all.flatMap((name) => own(values, `${command.name} ${name}`) ?? own(values, name) ?? []);
        const patterns = [command.name, ...command.aliases].flatMap((name) => all.map((flag) => `${name}:${flag}`));
        return `    ${patterns.join('|')}) _meow_kind=${kindText(kinds[0] ?? 'text')} ;;`;
      }),
  );
  const placed = commands.flatMap((command) => {
    const kinds = present(own<readonly Kind[]>(ARGUMENTS, command.name), `completion of ${command.name}`);
    return kinds.slice(0, command.arguments).map((kind, index) => {
      const place = command.repeats && index === kinds.length - 1 ? '*' : String(index + 1);
      const patterns = [command.name, ...command.aliases].map((name) => `${name}:${place}`);
      return `    ${patterns.join('|')}) _meow_kind=${kindText(kind)} ;;`;
    });
  });
  return `_meow_commands() {
  printf '%s\\n' ${named.map(({ name, description }) => line(name, description)).join(' ')}
}
_meow_flags() {
  case $1 in
${flags.join('\n')}
  esac
}
# The kind of the value of a flag: COMMAND FLAG. Fails if the flag has no value.
_meow_value() {
  _meow_kind=
  case $1:$2 in
${valued.join('\n')}
    *) return 1 ;;
  esac
}
# The kind of an argument: COMMAND NUMBER.
_meow_argument() {
  _meow_kind=text
  case $1:$2 in
${placed.join('\n')}
  esac
}
_meow_built_in() {
  printf '%s\\n' ${names.adapters.join(' ')}
}
`;
}

function patternOf({ name, aliases }: CompletedCommand): string {
  return [name, ...aliases].join('|');
}

function line(value: string, description: string): string {
  return quoted(`${value}\t${description}`);
}

function kindText(kind: Kind): string {
  return typeof kind === 'string' ? kind : quoted(`words ${kind.words.join(' ')}`);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
