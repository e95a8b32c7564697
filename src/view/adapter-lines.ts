// What an adapter does, for people who want to know before they use it: every command that it starts, and what else it
// defines for its agent.

import type { Json, JsonMap } from '../base/json.ts';
import { sanitize } from '../base/sanitize.ts';
import { type Adapter, channelsOf, type DialogPattern, type HookNames, PERMISSIONS } from '../ir/adapter.ts';
import { type Text, writtenText } from '../ir/text.ts';
import { padTo } from './row.ts';

export { channelsOf } from '../ir/adapter.ts';

type Row = readonly [string, string];

export function commandsOf({ terminal, headless, acp, program }: Adapter): readonly Row[] {
  const commands: readonly (readonly [string, Text | null | undefined])[] = [
    ['terminal', terminal?.command],
    ['terminal, resume', terminal?.resumeCommand],
    ['terminal, to fork', terminal?.forkCommand],
    ...permissionArgs('terminal', terminal),
    ['headless', headless?.command],
    ['headless, resume', headless?.resume],
    ['headless, to fork', headless?.fork],
    ['with a model', headless?.modelArgs],
    ['with an effort', headless?.effortArgs],
    ...permissionArgs('headless', headless),
    ['acp', acp?.command],
    ['doctor: version', program?.versionCommand],
    ['doctor: login', program?.loginCommand],
    ...(program?.checks ?? []).map(({ name, command }) => [`doctor: ${name}`, command] as const),
  ];
  return known(commands).map(([what, text]) => [what, writtenText(text)]);
}

/** What follows each command of the channel. */
function permissionArgs(channel: string, profile: Adapter['terminal'] | Adapter['headless']): readonly Row[] {
  return PERMISSIONS.flatMap((level) => {
    const args = profile?.permissions[level] ?? '';
    return args === '' ? [] : [[`${channel}, permissions ${level}`, args] as const];
  });
}

/** Without pairs that have no value. */
function known<K, V>(pairs: readonly (readonly [K, V | null | undefined])[]): readonly (readonly [K, V])[] {
  return pairs.flatMap(([key, value]) => (value === null || value === undefined ? [] : [[key, value] as const]));
}

/** Labels with their texts, over as many lines as a text has. */
export function labelled(rows: readonly Row[]): readonly string[] {
  const width = rows.reduce((widest, [label]) => Math.max(widest, label.length), 0);
  return rows.flatMap(([label, text]) => {
    const lines = text.trim().split('\n').map(sanitize);
    return lines.map((line, at) => `  ${padTo(at === 0 ? sanitize(label) : '', width)}  ${line}`.trimEnd());
  });
}

/** Paragraphs with a head for each section of the adapter's file. `written`: keys in the file, `ready.deadline`. */
export function describeAdapter(adapter: Adapter, written: ReadonlySet<string>): readonly string[] {
  const { program, environment, home, files, hooks, terminal, limits } = adapter;
  const paragraphs: readonly (readonly [string, readonly Row[]])[] = [
    ['Commands', commandsOf(adapter)],
    ['What must be installed  [program]', rowsOf('program', programJson(program) ?? {}, written)],
    [
      'Environment  [environment]',
      Object.entries(environment).map(([name, text]) => [name, writtenText(text) || '(taken away)']),
    ],
    ['Home folder of its own  [home]', home === null ? [] : [[home.variable, homeText(home)]]],
    ['Files that are written for it  [[files]]', files.map(({ path, format }) => [writtenText(path), format])],
    ['Hooks  [hooks]', hooks === null ? [] : hookRows(hooks)],
    ...sectionsOf(adapter).map(
      ([section, values]) => [`${HEADS[section]}  [${section}]`, rowsOf(section, values, written)] as const,
    ),
    [
      'Questions that are recognised  [[dialogs]]',
      (terminal?.dialogs ?? []).map((dialog) => [dialog.name, dialogText(dialog)]),
    ],
    [
      'Limits of its account  [[limits]]',
      limits.map(({ pattern, reset }) => ['says', reset === null ? pattern : `${pattern}\nwhen it ends: ${reset}`]),
    ],
  ];
  return paragraphs.flatMap(([head, rows]) => (rows.length === 0 ? [] : ['', head, ...labelled(rows)]));
}

const HEADS = {
  spawn: 'In a terminal',
  ready: 'When it can take a prompt',
  prompt_injection: 'How a prompt is put in',
  acknowledge: 'How a prompt is known to have arrived',
  liveness: 'How long it may give no sign of life',
  graceful_stop: 'How it is interrupted and ended',
  headless: 'Without a terminal',
  acp: 'By the Agent Client Protocol',
} as const;

type Section = keyof typeof HEADS;

/** The values of each section of the file that is about one channel, without the commands. */
function sectionsOf({ terminal, headless, acp }: Adapter): readonly (readonly [Section, object])[] {
  return known<Section, object>([
    ['spawn', terminal && { sessionId: terminal.sessionId, startupDelayMs: terminal.startupMs }],
    ['ready', terminal?.ready],
    ['prompt_injection', terminal?.injection],
    ['acknowledge', terminal && { hook: terminal.acknowledge.byHook, ...terminal.acknowledge, byHook: null }],
    ['liveness', terminal?.liveness],
    ['graceful_stop', terminal?.stop],
    ['headless', headless && { ...headless, ...NO_COMMANDS }],
    ['acp', acp && { ...acp, ...NO_COMMANDS }],
  ]);
}

const NO_COMMANDS = { command: null, resume: null, fork: null, permissions: null, modelArgs: null, effortArgs: null };

function rowsOf(section: string, values: object, written: ReadonlySet<string>): readonly Row[] {
  return Object.entries(values).flatMap(([name, value]) => {
    const key = keyOf(name);
    const text = valueText(name, value);
    if (text === '') return [];
    return [[key, written.has(`${section}.${key}`) ? text : `${text}  (default)`] as const];
  });
}

/** As in a file: `deadlineMs` is its `deadline`. */
function keyOf(name: string): string {
  return name.replace(/Ms$/, '').replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function valueText(name: string, value: unknown): string {
  if (value === null || value === undefined) return '';
  if (Array.isArray(value)) return value.map((item) => valueText('', item)).join(name.endsWith('Keys') ? ' ' : '\n');
  if (typeof value === 'number') return name.endsWith('Ms') ? durationText(value) : String(value);
  return typeof value === 'boolean' ? String(value) : writtenText(value as Text);
}

/** As one would write it. */
function durationText(ms: number): string {
  const [unit, size] = UNITS.find(([, each]) => ms > 0 && ms % each === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}

const UNITS = [
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

function homeText({ from, link, copy }: NonNullable<Adapter['home']>): string {
  const shared = link.length === 0 ? [] : [`shares ${link.join(', ')}`];
  const copied = copy.length === 0 ? [] : [`has copies of ${copy.join(', ')}`];
  return [`in place of ~/${from}`, ...shared, ...copied].join('; ');
}

function hookRows(hooks: HookNames): readonly Row[] {
  return known([
    ['it has begun', hooks.begun],
    ['it has the prompt', hooks.accepted],
    ['a tool begins', hooks.toolBegun],
    ['a tool has ended', hooks.toolEnded],
    ['it waits for a person', hooks.blocked.length === 0 ? null : hooks.blocked.join(', ')],
    ['it has stopped', hooks.stopped],
    ['it has failed', hooks.failed],
    ['it has ended', hooks.ended],
  ]);
}

function dialogText({ pattern, answer, approve, reject, cure, atStart }: DialogPattern): string {
  const keys = known([
    ['yes', approve],
    ['no', reject],
  ]).map(([word, pressed]) => `${word} is ${pressed.join(' ')}`);
  const byPerson =
    keys.length === 0 ? 'a person must answer it in the terminal' : `a person decides: ${keys.join(', ')}`;
  const who = answer === null ? byPerson : `is answered: ${answer.join(' ')}`;
  const lines = [pattern, atStart ? `${who}; only until it has been ready` : who, ...(cure === null ? [] : [cure])];
  return lines.join('\n');
}

/** The same as data; absent values are null. */
export function adapterJson(adapter: Adapter): Readonly<Record<string, Json>> {
  const { description, program, environment, home, files, terminal, limits } = adapter;
  const sections = new Map<string, JsonMap>(
    sectionsOf(adapter).map(([section, values]) => [section, sectionJson(values)]),
  );
  return {
    description,
    channels: channelsOf(adapter),
    commands: Object.fromEntries(commandsOf(adapter)),
    environment: Object.fromEntries(Object.entries(environment).map(([name, text]) => [name, writtenText(text)])),
    home: home === null ? null : { ...home },
    files: files.map(({ path, format }) => ({ path: writtenText(path), format })),
    hooks: adapter.hooks === null ? {} : Object.fromEntries(hookRows(adapter.hooks)),
    dialogs: (terminal?.dialogs ?? []).map(({ atStart, ...dialog }) => ({ ...dialog, at_start: atStart })),
    limits: limits.map(({ pattern, reset }) => ({ pattern, reset })),
    ...Object.fromEntries(Object.keys(HEADS).map((section) => [section, sections.get(section) ?? null])),
    program: programJson(program),
  };
}

function programJson(program: Adapter['program']): JsonMap | null {
  return program && { name: program.name, tried: program.tried, install: program.install };
}

/** With durations as in a file. */
function sectionJson(values: object): JsonMap {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]: [string, unknown]) => {
      if (Object.hasOwn(NO_COMMANDS, name) || name === 'byHook') return [];
      const isPlain = value === null || typeof value === 'boolean' || Array.isArray(value);
      return [[keyOf(name), isPlain ? (value as Json) : valueText(name, value)]];
    }),
  );
}
