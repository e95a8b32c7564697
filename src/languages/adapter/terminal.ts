// Reads the terminal profile of an agent: `[spawn]` and related sections.

import type {
  Acknowledgement,
  Alteration,
  DialogPattern,
  HookNames,
  Injection,
  Liveness,
  ReadySigns,
  StopWays,
  TerminalProfile,
} from '../../ir/adapter.ts';
import type { Report } from '../report.ts';
import { booleanAt, checkKeys, durationAt, missing, tableAt, wordAt } from '../toml-fields.ts';
import type { TomlTable } from '../toml-tree.ts';
import { filledAt, keysAt, neededAt, pattern, patternsAt, signalAt, tablesAt, wordsAt } from './fields.ts';
import type { Texts } from './placeholders.ts';
import { readSessionCommands } from './session.ts';

/** Sections without meaning for an agent without a terminal. */
const PARTS = ['ready', 'prompt_injection', 'acknowledge', 'dialogs', 'liveness', 'graceful_stop'];

export const TERMINAL_SECTIONS: readonly string[] = ['spawn', ...PARTS];

const STARTUP_MS = 3_000;

export function readTerminal(texts: Texts, root: TomlTable, hooks: HookNames | null): TerminalProfile | null {
  const { report } = texts;
  const table = tableAt(report, root, 'spawn', 'Write [spawn] and below it command = "my-agent".');
  const ways = {
    ready: readReady(report, root),
    injection: readInjection(report, root),
    acknowledge: readAcknowledgement(report, root, hooks),
    dialogs: tablesAt(report, root, 'dialogs').map((dialog) => readDialog(report, dialog)),
    liveness: readLiveness(report, root),
    stop: readStop(report, root),
  };
  if (table === null) {
    if (!root.entries.has('spawn')) warnOfParts(report, root);
    return null;
  }
  checkKeys(
    report,
    table,
    ['command', 'resume_command', 'fork_command', 'session_id', 'startup_delay'],
    '[spawn]',
    'warning',
  );
  const { command, resume, fork, sessionId } = readSessionCommands(texts, table, {
    section: '[spawn]',
    resume: 'resume_command',
    fork: 'fork_command',
    canTell: hooks !== null,
    untold: 'in a terminal only a hook could, and there is no [hooks]',
    more: [],
  });
  const startupMs = durationAt(report, table, 'startup_delay') ?? (ways.ready === null ? STARTUP_MS : 0);
  return { command, resumeCommand: resume, forkCommand: fork, sessionId, startupMs, ...ways };
}

function warnOfParts(report: Report, root: TomlTable): void {
  for (const name of PARTS) {
    const entry = root.entries.get(name);
    if (entry === undefined) continue;
    const message = `"${name}" applies to agents in a terminal, but [spawn] is missing`;
    report.warning('unused-section', entry.keyPlace, message, 'Add [spawn], or remove it.');
  }
}

const READY_MS = 30_000;

function readReady(report: Report, root: TomlTable): ReadySigns | null {
  const table = tableAt(report, root, 'ready', 'Write [ready] and below it patterns = ["…"].');
  if (table === null) return null;
  checkKeys(report, table, ['patterns', 'deadline'], '[ready]', 'warning');
  const patterns = patternsAt(report, table, 'patterns');
  const place = table.entries.get('patterns')?.value;
  if (place === undefined || (place.kind === 'list' && place.items.length === 0)) {
    const hint = "Say what is on the screen when it can take a prompt: patterns = ['^>'].";
    missing(report, place?.place ?? table.place, '[ready]', 'patterns', hint);
  }
  return { patterns, deadlineMs: durationAt(report, table, 'deadline') ?? READY_MS };
}

const INJECTION_KEYS = [
  'pre_keys',
  'pre_delay',
  'method',
  'post_delay',
  'post_keys',
  'clear_keys',
  'draft',
  'alters',
  'misread',
];
const ALTERATIONS: readonly Alteration[] = ['tabs', 'carriage-returns', 'controls', 'invisibles', 'composition'];
/** Typed text is read key by key; the delay keeps the submitting key from becoming part of it. */
const POST_MS: Readonly<Record<Injection['method'], number>> = { paste: 100, literal: 300, keys: 300 };

function readInjection(report: Report, root: TomlTable): Injection {
  const table = tableAt(report, root, 'prompt_injection', 'Write [prompt_injection] and its keys below it.') ?? EMPTY;
  checkKeys(report, table, INJECTION_KEYS, '[prompt_injection]', 'warning');
  const method = wordAt(report, table, 'method', ['paste', 'literal', 'keys'] as const) ?? 'paste';
  return {
    preKeys: keysAt(report, table, 'pre_keys') ?? [],
    preDelayMs: durationAt(report, table, 'pre_delay') ?? 0,
    method,
    postDelayMs: durationAt(report, table, 'post_delay') ?? POST_MS[method],
    postKeys: keysAt(report, table, 'post_keys') ?? ['Enter'],
    clearKeys: keysAt(report, table, 'clear_keys') ?? ['C-u'],
    draft: patternsAt(report, table, 'draft'),
    alters: wordsAt(report, table, 'alters', ALTERATIONS),
    misread: patternsAt(report, table, 'misread'),
  };
}

const ACKNOWLEDGE_MS = 2_000;

function readAcknowledgement(report: Report, root: TomlTable, hooks: HookNames | null): Acknowledgement {
  const table = tableAt(report, root, 'acknowledge', 'Write [acknowledge] and below it hook = true.') ?? EMPTY;
  checkKeys(report, table, ['hook', 'busy', 'queued', 'timeout'], '[acknowledge]', 'warning');
  const hasHook = (hooks?.accepted ?? null) !== null;
  const byHook = booleanAt(report, table, 'hook') ?? hasHook;
  if (byHook && !hasHook) {
    const place = table.entries.get('hook')?.value.place ?? table.place;
    const message = 'no hook tells that a prompt was accepted';
    report.error('no-hook', place, message, 'Name it under [hooks]: accepted = "NAME"; or write hook = false.');
  }
  return {
    byHook,
    busy: patternsAt(report, table, 'busy'),
    queued: patternsAt(report, table, 'queued'),
    timeoutMs: durationAt(report, table, 'timeout') ?? ACKNOWLEDGE_MS,
  };
}

function readDialog(report: Report, table: TomlTable): DialogPattern {
  const section = '[[dialogs]]';
  checkKeys(report, table, ['name', 'pattern', 'answer', 'approve', 'reject', 'cure', 'at_start'], section, 'warning');
  const name = neededAt(report, table, section, 'name', 'Say what is asked: name = "permission".');
  const shown = neededAt(
    report,
    table,
    section,
    'pattern',
    "Say what is on the screen then: pattern = 'Do you trust'.",
  );
  return {
    name: name?.value ?? '',
    pattern: (shown === null ? null : pattern(report, shown)) ?? '',
    answer: keysAt(report, table, 'answer'),
    approve: keysAt(report, table, 'approve'),
    reject: keysAt(report, table, 'reject'),
    cure: filledAt(report, table, 'cure')?.value ?? null,
    atStart: booleanAt(report, table, 'at_start') ?? false,
  };
}

function readLiveness(report: Report, root: TomlTable): Liveness {
  const table = tableAt(report, root, 'liveness', 'Write [liveness] and below it idle = "15m".') ?? EMPTY;
  checkKeys(report, table, ['first', 'idle', 'failed'], '[liveness]', 'warning');
  return {
    firstMs: durationAt(report, table, 'first'),
    idleMs: durationAt(report, table, 'idle'),
    failed: patternsAt(report, table, 'failed'),
  };
}

const STOP_MS = 5_000;

function readStop(report: Report, root: TomlTable): StopWays {
  const table = tableAt(report, root, 'graceful_stop', 'Write [graceful_stop] and below it keys = ["C-c"].') ?? EMPTY;
  checkKeys(report, table, ['interrupt_keys', 'keys', 'wait', 'signal'], '[graceful_stop]', 'warning');
  return {
    interruptKeys: keysAt(report, table, 'interrupt_keys') ?? ['C-c'],
    keys: keysAt(report, table, 'keys') ?? [],
    waitMs: durationAt(report, table, 'wait') ?? STOP_MS,
    signal: signalAt(report, table),
  };
}

/** Stands for an absent section. */
const EMPTY: TomlTable = { kind: 'table', place: { from: 0, to: 1 }, entries: new Map() };
