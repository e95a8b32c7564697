// Pictures of states. Each state has its own shape, so colour is never the only sign.

import type { ComponentChildren } from 'preact';

/** Class of an icon, a pill and a part of a bar. */
export type Tone = 'ok' | 'run' | 'you' | 'bad' | 'park' | 'pend' | 'skip' | 'gone';

/** Of a run, a step, a gate or an agent: its `data-status`. */
export function toneOf(status: string): Tone {
  return TONES[status] ?? 'pend';
}

const TONES: Readonly<Record<string, Tone>> = {
  done: 'ok',
  approved: 'ok',
  answered: 'ok',
  valid: 'ok',
  running: 'run',
  completing: 'run',
  cleaning_up: 'run',
  active: 'run',
  starting: 'run',
  waiting: 'you',
  open: 'you',
  failed: 'bad',
  rejected: 'bad',
  invalid: 'bad',
  damaged: 'bad',
  unreadable: 'bad',
  deleted: 'bad',
  parked: 'park',
  paused: 'park',
  interrupted: 'gone',
  gone: 'gone',
  stopped: 'skip',
  skipped: 'skip',
  expired: 'skip',
};

const SHAPES: Readonly<Record<Tone, ComponentChildren>> = {
  ok: (
    <path
      d="M3.2 8.6l3.1 3.1 6.5-7"
      fill="none"
      stroke="currentColor"
      stroke-width="2"
      stroke-linecap="round"
      stroke-linejoin="round"
    />
  ),
  run: (
    <>
      <circle cx="8" cy="8" r="5.6" fill="none" stroke="currentColor" stroke-opacity=".25" stroke-width="2" />
      <path
        class="arc"
        d="M8 2.4a5.6 5.6 0 0 1 5.6 5.6"
        fill="none"
        stroke="currentColor"
        stroke-width="2"
        stroke-linecap="round"
      />
    </>
  ),
  you: (
    <>
      <path d="M8 1.2l6.8 6.8L8 14.8 1.2 8z" fill="currentColor" />
      <path d="M8 4.9v3.7" stroke="var(--surface)" stroke-width="1.7" stroke-linecap="round" />
      <circle cx="8" cy="10.9" r="1" fill="var(--surface)" />
    </>
  ),
  bad: <path d="M4 4l8 8M12 4l-8 8" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" />,
  park: <path d="M5.5 3.5v9M10.5 3.5v9" stroke="currentColor" stroke-width="2.3" stroke-linecap="round" />,
  pend: <circle cx="8" cy="8" r="5.4" fill="none" stroke="currentColor" stroke-width="1.5" stroke-dasharray="2.4 2" />,
  skip: <path d="M3.5 8h9" stroke="currentColor" stroke-width="2" stroke-linecap="round" />,
  gone: (
    <path
      d="M13.6 8A5.6 5.6 0 1 1 8 2.4M3.5 12.5l9-9"
      fill="none"
      stroke="currentColor"
      stroke-width="1.7"
      stroke-linecap="round"
    />
  ),
};

const WORDS: Readonly<Record<string, string>> = { waiting: 'waits for you', open: 'waits for you' };

/** What a status is called in texts. */
export function statusWord(status: string): string {
  return WORDS[status] ?? status.replace('_', ' ');
}

/** `label`: what a screen reader says; '' if the text beside it says it. */
export function StatusIcon({
  status,
  label = statusWord(status),
}: {
  readonly status: string;
  readonly label?: string;
}) {
  const tone = toneOf(status);
  const named = label === '' ? { 'aria-hidden': true as const } : { role: 'img' as const, 'aria-label': label };
  return (
    <svg class={`ic ${tone}`} viewBox="0 0 16 16" {...named}>
      {SHAPES[tone]}
    </svg>
  );
}

export function Cat() {
  return (
    <svg viewBox="0 0 24 24" aria-hidden="true">
      <path
        d="M4 20V5.2c0-.7.8-1 1.3-.6L9 7.8h6l3.7-3.2c.5-.4 1.3-.1 1.3.6V20c0 0-3 1.4-8 1.4S4 20 4 20z"
        fill="currentColor"
      />
      <circle cx="9.2" cy="13" r="1.25" fill="var(--surface)" />
      <circle cx="14.8" cy="13" r="1.25" fill="var(--surface)" />
      <path
        d="M10.6 16.4l1.4 1 1.4-1"
        fill="none"
        stroke="var(--surface)"
        stroke-width="1.2"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
