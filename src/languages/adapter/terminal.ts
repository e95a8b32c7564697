// Reads the terminal profile of an agent: `[spawn]` and related sections.

import { type Adapter, DEFAULT_TIMING, type Injection, type TerminalProfile, type Timing } from '../../ir/adapter.ts';
import { missing } from '../report.ts';
import { word } from '../toml-fields.ts';
import { optionalSection, pattern, type Reading, sectionAt, sectionsAt } from './fields.ts';
import { readPermissions, readSessionCommands, readSignal } from './headless.ts';
import {
  ACKNOWLEDGE,
  ALTERATIONS,
  DIALOG,
  GRACEFUL_STOP,
  INJECTION,
  LIVENESS,
  METHODS,
  READY,
  SPAWN,
  TERMINAL_SECTION_NAMES,
  TIMING,
} from './keys.ts';

const STARTUP_MS = 3_000;

export function readTerminal(reading: Reading, hooks: Adapter['hooks']): TerminalProfile | null {
  const parts = {
    ready: readReady(reading),
    injection: readInjection(reading),
    acknowledge: readAcknowledgement(reading, hooks),
    dialogs: readDialogs(reading),
    liveness: readLiveness(reading),
    stop: readStop(reading),
    timing: readTiming(reading),
  };
  warnOfParts(reading);
  return sectionAt(reading, SPAWN, 'below it command = "my-agent"', (spawn) => {
    const { command, resume, fork, sessionId } = readSessionCommands(reading, spawn, {
      resume: 'resume_command',
      fork: 'fork_command',
      cannotReport: hooks === null ? 'in a terminal only a hook could, and there is no [hooks]' : null,
      more: [],
    });
    const startupMs = spawn.duration('startup_delay') ?? (parts.ready === null ? STARTUP_MS : 0);
    const permissions = readPermissions(reading, spawn);
    return { command, resumeCommand: resume, forkCommand: fork, permissions, sessionId, startupMs, ...parts };
  });
}

function warnOfParts({ report, root }: Reading): void {
  if (root.entries.has('spawn')) return;
  for (const name of TERMINAL_SECTION_NAMES) {
    const entry = root.entries.get(name);
    if (entry === undefined) continue;
    const message = `"${name}" applies to agents in a terminal, but [spawn] is missing`;
    report.warning('unused-section', entry.keyPlace, message, 'Add [spawn], or remove it.');
  }
}

const READY_MS = 30_000;

function readReady(reading: Reading): TerminalProfile['ready'] {
  return sectionAt(reading, READY, 'below it patterns = ["…"]', (ready) => {
    const written = ready.value('patterns');
    if (written === undefined || (written.kind === 'list' && written.items.length === 0)) {
      const hint = "Say what is on the screen when it can take a prompt: patterns = ['^>'].";
      missing(reading.report, (written ?? ready).place, '[ready]', 'patterns', hint);
    }
    return { patterns: ready.patterns('patterns'), deadlineMs: ready.duration('deadline') ?? READY_MS };
  });
}

/** Typed text is read key by key; the delay keeps the submitting key from becoming part of it. */
const POST_MS: Readonly<Record<Injection['method'], number>> = { paste: 100, literal: 300, keys: 300 };

function readInjection(reading: Reading): Injection {
  return optionalSection(reading, INJECTION, 'its keys below it', (injection) => {
    const method = injection.word('method', METHODS) ?? 'paste';
    return {
      preKeys: injection.keys('pre_keys') ?? [],
      preDelayMs: injection.duration('pre_delay') ?? 0,
      method,
      postDelayMs: injection.duration('post_delay') ?? POST_MS[method],
      postKeys: injection.keys('post_keys') ?? ['Enter'],
      clearKeys: injection.keys('clear_keys') ?? ['C-u'],
      draft: injection.patterns('draft'),
      alters: injection.texts('alters').flatMap((text) => word(reading.report, 'alters', text, ALTERATIONS) ?? []),
      misread: injection.patterns('misread'),
      deadlineMs: injection.duration('deadline'),
    };
  });
}

const ACKNOWLEDGE_MS = 2_000;

function readAcknowledgement(reading: Reading, hooks: Adapter['hooks']): TerminalProfile['acknowledge'] {
  return optionalSection(reading, ACKNOWLEDGE, 'below it hook = true', (acknowledge) => {
    const hasHook = (hooks?.accepted ?? null) !== null;
    const byHook = acknowledge.boolean('hook') ?? hasHook;
    if (byHook && !hasHook) {
      const { place } = acknowledge.value('hook') ?? acknowledge;
      const hint = 'Name it under [hooks]: accepted = "NAME"; or write hook = false.';
      reading.report.error('no-hook', place, 'no hook tells that a prompt was accepted', hint);
    }
    return {
      byHook,
      busy: acknowledge.patterns('busy'),
      queued: acknowledge.patterns('queued'),
      timeoutMs: acknowledge.duration('timeout') ?? ACKNOWLEDGE_MS,
    };
  });
}

function readDialogs(reading: Reading): TerminalProfile['dialogs'] {
  return sectionsAt(reading, reading.root.entries.get('dialogs')?.value, 'dialogs', DIALOG, (dialog) => {
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
  return optionalSection(reading, LIVENESS, 'below it idle = "15m"', (liveness) => ({
    firstMs: liveness.duration('first'),
    idleMs: liveness.duration('idle'),
    failed: liveness.patterns('failed'),
  }));
}

const STOP_MS = 5_000;

function readStop(reading: Reading): TerminalProfile['stop'] {
  return optionalSection(reading, GRACEFUL_STOP, 'below it keys = ["C-c"]', (stop) => ({
    interruptKeys: stop.keys('interrupt_keys') ?? ['C-c'],
    keys: stop.keys('keys') ?? [],
    waitMs: stop.duration('wait') ?? STOP_MS,
    signal: readSignal(stop),
  }));
}

function readTiming(reading: Reading): Timing {
  return optionalSection(reading, TIMING, 'its keys below it', (timing) => ({
    settleMs: timing.duration('settle') ?? DEFAULT_TIMING.settleMs,
    pauseMs: timing.duration('pause') ?? DEFAULT_TIMING.pauseMs,
    typingMs: timing.duration('typing') ?? DEFAULT_TIMING.typingMs,
    visibleMs: timing.duration('visible') ?? DEFAULT_TIMING.visibleMs,
    reactMs: timing.duration('react') ?? DEFAULT_TIMING.reactMs,
    recoverMs: timing.duration('recover') ?? DEFAULT_TIMING.recoverMs,
  }));
}
