// Reads the terminal profile of an agent: `[spawn]` and related sections.

import {
  type Adapter,
  type Alteration,
  DEFAULT_TIMING,
  type Injection,
  type TerminalProfile,
  type Timing,
} from '../../ir/adapter.ts';
import { missing, word } from '../toml-fields.ts';
import { optionalSection, pattern, sectionAt, sectionsAt } from './fields.ts';
import { readPermissions, readSessionCommands } from './headless.ts';
import type { Reading } from './placeholders.ts';

/** Sections without meaning for an agent without a terminal. */
const PARTS = ['ready', 'prompt_injection', 'acknowledge', 'dialogs', 'liveness', 'graceful_stop', 'timing'];

export const TERMINAL_SECTIONS: readonly string[] = ['spawn', ...PARTS];

const SPAWN_KEYS = ['command', 'resume_command', 'fork_command', 'session_id', 'permissions', 'startup_delay'];
const STARTUP_MS = 3_000;

export function readTerminal(reading: Reading, hooks: Adapter['hooks']): TerminalProfile | null {
  const spawn = sectionAt(reading, 'spawn', SPAWN_KEYS, 'below it command = "my-agent"');
  const parts = {
    ready: readReady(reading),
    injection: readInjection(reading),
    acknowledge: readAcknowledgement(reading, hooks),
    dialogs: readDialogs(reading),
    liveness: readLiveness(reading),
    stop: readStop(reading),
    timing: readTiming(reading),
  };
  if (spawn === null) {
    warnOfParts(reading);
    return null;
  }
  const { command, resume, fork, sessionId } = readSessionCommands(reading, spawn, {
    resume: 'resume_command',
    fork: 'fork_command',
    cannotReport: hooks === null ? 'in a terminal only a hook could, and there is no [hooks]' : null,
    more: [],
  });
  const startupMs = spawn.duration('startup_delay') ?? (parts.ready === null ? STARTUP_MS : 0);
  const permissions = readPermissions(reading, spawn);
  return { command, resumeCommand: resume, forkCommand: fork, permissions, sessionId, startupMs, ...parts };
}

function warnOfParts({ report, root }: Reading): void {
  if (root.entries.has('spawn')) return;
  for (const name of PARTS) {
    const entry = root.entries.get(name);
    if (entry === undefined) continue;
    const message = `"${name}" applies to agents in a terminal, but [spawn] is missing`;
    report.warning('unused-section', entry.keyPlace, message, 'Add [spawn], or remove it.');
  }
}

const READY_MS = 30_000;

function readReady(reading: Reading): TerminalProfile['ready'] {
  const ready = sectionAt(reading, 'ready', ['patterns', 'deadline'], 'below it patterns = ["…"]');
  if (ready === null) return null;
  const written = ready.value('patterns');
  if (written === undefined || (written.kind === 'list' && written.items.length === 0)) {
    const hint = "Say what is on the screen when it can take a prompt: patterns = ['^>'].";
    missing(reading.report, (written ?? ready.table).place, '[ready]', 'patterns', hint);
  }
  return { patterns: ready.patterns('patterns'), deadlineMs: ready.duration('deadline') ?? READY_MS };
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
  'deadline',
];
const ALTERATIONS: readonly Alteration[] = ['tabs', 'carriage-returns', 'controls', 'invisibles', 'composition'];
/** Typed text is read key by key; the delay keeps the submitting key from becoming part of it. */
const POST_MS: Readonly<Record<Injection['method'], number>> = { paste: 100, literal: 300, keys: 300 };

function readInjection(reading: Reading): Injection {
  const { report } = reading;
  const injection = optionalSection(reading, 'prompt_injection', INJECTION_KEYS, 'its keys below it');
  const method = injection.word('method', ['paste', 'literal', 'keys'] as const) ?? 'paste';
  return {
    preKeys: injection.keys('pre_keys') ?? [],
    preDelayMs: injection.duration('pre_delay') ?? 0,
    method,
    postDelayMs: injection.duration('post_delay') ?? POST_MS[method],
    postKeys: injection.keys('post_keys') ?? ['Enter'],
    clearKeys: injection.keys('clear_keys') ?? ['C-u'],
    draft: injection.patterns('draft'),
    alters: injection.texts('alters').flatMap((text) => word(report, 'alters', text, ALTERATIONS) ?? []),
    misread: injection.patterns('misread'),
    deadlineMs: injection.duration('deadline'),
  };
}

const ACKNOWLEDGE_KEYS = ['hook', 'busy', 'queued', 'timeout'];
const ACKNOWLEDGE_MS = 2_000;

function readAcknowledgement(reading: Reading, hooks: Adapter['hooks']): TerminalProfile['acknowledge'] {
  const acknowledge = optionalSection(reading, 'acknowledge', ACKNOWLEDGE_KEYS, 'below it hook = true');
  const hasHook = (hooks?.accepted ?? null) !== null;
  const byHook = acknowledge.boolean('hook') ?? hasHook;
  if (byHook && !hasHook) {
    const { place } = acknowledge.value('hook') ?? acknowledge.table;
    const hint = 'Name it under [hooks]: accepted = "NAME"; or write hook = false.';
    reading.report.error('no-hook', place, 'no hook tells that a prompt was accepted', hint);
  }
  return {
    byHook,
    busy: acknowledge.patterns('busy'),
    queued: acknowledge.patterns('queued'),
    timeoutMs: acknowledge.duration('timeout') ?? ACKNOWLEDGE_MS,
  };
}

const DIALOG_KEYS = ['name', 'pattern', 'answer', 'approve', 'reject', 'cure', 'at_start'];

function readDialogs(reading: Reading): TerminalProfile['dialogs'] {
  return sectionsAt(reading, reading.root, 'dialogs', DIALOG_KEYS).map((dialog) => {
    const name = dialog.needed('name', 'Say what is asked: name = "permission".');
    const shown = dialog.needed('pattern', "Say what is on the screen then: pattern = 'Do you trust'.");
    return {
      name: name?.value ?? '',
      pattern: (shown === null ? null : pattern(reading.report, shown)) ?? '',
      answer: dialog.keys('answer'),
      approve: dialog.keys('approve'),
      reject: dialog.keys('reject'),
      cure: dialog.text('cure'),
      atStart: dialog.boolean('at_start') ?? false,
    };
  });
}

function readLiveness(reading: Reading): TerminalProfile['liveness'] {
  const liveness = optionalSection(reading, 'liveness', ['first', 'idle', 'failed'], 'below it idle = "15m"');
  return {
    firstMs: liveness.duration('first'),
    idleMs: liveness.duration('idle'),
    failed: liveness.patterns('failed'),
  };
}

const STOP_KEYS = ['interrupt_keys', 'keys', 'wait', 'signal'];
const STOP_MS = 5_000;

function readStop(reading: Reading): TerminalProfile['stop'] {
  const stop = optionalSection(reading, 'graceful_stop', STOP_KEYS, 'below it keys = ["C-c"]');
  return {
    interruptKeys: stop.keys('interrupt_keys') ?? ['C-c'],
    keys: stop.keys('keys') ?? [],
    waitMs: stop.duration('wait') ?? STOP_MS,
    signal: stop.signal(),
  };
}

const TIMING_KEYS = ['settle', 'pause', 'typing', 'visible', 'react', 'recover'];

function readTiming(reading: Reading): Timing {
  const timing = optionalSection(reading, 'timing', TIMING_KEYS, 'its keys below it');
  return {
    settleMs: timing.duration('settle') ?? DEFAULT_TIMING.settleMs,
    pauseMs: timing.duration('pause') ?? DEFAULT_TIMING.pauseMs,
    typingMs: timing.duration('typing') ?? DEFAULT_TIMING.typingMs,
    visibleMs: timing.duration('visible') ?? DEFAULT_TIMING.visibleMs,
    reactMs: timing.duration('react') ?? DEFAULT_TIMING.reactMs,
    recoverMs: timing.duration('recover') ?? DEFAULT_TIMING.recoverMs,
  };
}
