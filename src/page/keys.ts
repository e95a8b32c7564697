// Keys of the page. Components register theirs while they are shown; `?` lists them.
//
//   shortcut/1  In a field for text no key is a command, and none with Ctrl, Alt or Meta is ours.
//   shortcut/2  `j` and `k` move the focus over everything that has `data-item`.
//   shortcut/3  A key that decides presses the button with that `data-key` in the focused article, or in the only article that
//               has one. If there are several and none has the focus, nothing happens.

import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

export interface KeyCommand {
  /** `j`, `Escape`, or two after one another: `g f`. */
  readonly key: string;
  readonly label: string;
  /** False: not meant for it now, so that commands that were registered earlier are asked. */
  readonly press: () => boolean | void;
}

interface Section {
  readonly title: string;
  readonly commands: () => readonly KeyCommand[];
}

/** Registered last comes last. */
const sections: Section[] = [];
const SEQUENCE_MS = 1500;
let first: { readonly key: string; readonly at: number } | null = null;

export const showsKeys = signal(false);

/** The commands may change with each drawing. */
export function useKeys(title: string, commands: readonly KeyCommand[]): void {
  const latest = useRef(commands);
  latest.current = commands;
  useEffect(() => {
    const section = { title, commands: () => latest.current };
    sections.push(section);
    return () => void sections.splice(sections.indexOf(section), 1);
  }, [title]);
}

/** For the list of keys. */
export function knownKeys(): readonly { readonly title: string; readonly commands: readonly KeyCommand[] }[] {
  return sections.map(({ title, commands }) => ({ title, commands: commands() }));
}

/** Call once. */
export function listenToKeys(): void {
  addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (isTyping(event.target)) return;
    const before = first !== null && event.timeStamp - first.at < SEQUENCE_MS ? `${first.key} ` : '';
    first = null;
    if (pressed(`${before}${event.key}`) || (before !== '' && pressed(event.key))) event.preventDefault();
    else if (sections.some((section) => section.commands().some(({ key }) => key.startsWith(`${event.key} `))))
      first = { key: event.key, at: event.timeStamp };
  });
}

function pressed(key: string): boolean {
  return sections
    .toReversed()
    .some(({ commands }) => commands().some((command) => command.key === key && command.press() !== false));
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !['checkbox', 'radio', 'button', 'range'].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}

/** `j`, `k`, and the keys of the buttons of an article. */
export const ITEM_KEYS: readonly KeyCommand[] = [
  { key: 'j', label: 'next', press: () => moveFocus(1) },
  { key: 'k', label: 'previous', press: () => moveFocus(-1) },
  { key: 'a', label: 'approve, allow, answer', press: () => pressInArticle('a') },
  { key: 'x', label: 'reject, deny', press: () => pressInArticle('x') },
  { key: 't', label: 'terminal of the agent that asks', press: () => pressInArticle('t') },
  { key: 'u', label: 'undo a decision within 3 s', press: () => pressInArticle('u') },
];

function moveFocus(by: 1 | -1): boolean {
  const items = [...document.querySelectorAll<HTMLElement>('[data-item]')].filter((item) => item.offsetParent !== null);
  const here = items.findIndex((item) => item.contains(document.activeElement));
  const next = items[here < 0 ? (by === 1 ? 0 : items.length - 1) : here + by];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
  return next !== undefined;
}

function pressInArticle(key: string): boolean {
  const within = (article: Element): HTMLElement | null => article.querySelector<HTMLElement>(`[data-key="${key}"]`);
  const focused = document.activeElement?.closest('article') ?? null;
  const articles = focused !== null ? [focused] : [...document.querySelectorAll('article')];
  const buttons = articles.flatMap((article) => within(article) ?? []);
  const [button] = buttons;
  if (button === undefined || buttons.length > 1) return false;
  if (button instanceof HTMLInputElement) button.focus();
  else button.click();
  return true;
}
