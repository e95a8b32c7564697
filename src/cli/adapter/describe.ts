// What an adapter does, for people who want to know before they use it: every command that it starts, and what else it
// says about its agent.

import type { Json } from '../../base/json.ts';
import type { Adapter, DialogPattern, HookNames } from '../../ir/adapter.ts';
import { channelsOf } from '../../ir/adapter.ts';
import type { Text } from '../../ir/text.ts';
import { writtenText } from '../../ir/text.ts';
import { padTo, tame } from '../../view/row.ts';

/** Every command, by what it is for. */
export function commandsOf({ terminal, headless, acp, program }: Adapter): readonly (readonly [string, string])[] {
  const commands: readonly (readonly [string, Text | null | undefined])[] = [
    ['terminal', terminal?.command],
    ['terminal, to go on', terminal?.resumeCommand],
    ['terminal, to fork', terminal?.forkCommand],
    ['headless', headless?.command],
    ['headless, to go on', headless?.resume],
    ['headless, to fork', headless?.fork],
    ['with a model', headless?.modelArgs],
    ['with an effort', headless?.effortArgs],
    ['acp', acp?.command],
    ['doctor: version', program?.versionCommand],
    ['doctor: login', program?.loginCommand],
    ...(program?.checks ?? []).map(({ name, command }) => [`doctor: ${name}`, command] as const),
  ];
  return commands.flatMap(([what, text]) =>
    text === null || text === undefined ? [] : [[what, writtenText(text)] as const],
  );
}

/** A label and what stands behind it, over as many lines as it has. */
export function labelled(rows: readonly (readonly [string, string])[]): readonly string[] {
  const width = rows.reduce((widest, [label]) => Math.max(widest, label.length), 0);
  return rows.flatMap(([label, text]) => {
    const lines = text.trim().split('\n').map(tame);
    return lines.map((line, at) => `  ${padTo(at === 0 ? tame(label) : '', width)}  ${line}`.trimEnd());
  });
}

/** Headed paragraphs, one for each thing that the adapter speaks of. */
export function describeAdapter(adapter: Adapter): readonly string[] {
  const { environment, home, files, hooks, terminal, limits } = adapter;
  const paragraphs: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
    ['Commands', commandsOf(adapter)],
    ['Environment', Object.entries(environment).map(([name, text]) => [name, writtenText(text) || '(taken away)'])],
    ['Home folder of its own', home === null ? [] : [[home.variable, homeText(home)]]],
    ['Files that are written for it', files.map(({ path, format }) => [writtenText(path), format])],
    ['Hooks', hooks === null ? [] : hookRows(hooks)],
    ['Questions that are recognised', (terminal?.dialogs ?? []).map((dialog) => [dialog.name, dialogText(dialog)])],
    ['Limits', limits.map(({ pattern, reset }) => [pattern, reset === null ? '' : `tells when it ends: ${reset}`])],
  ];
  return paragraphs.flatMap(([head, rows]) => (rows.length === 0 ? [] : ['', head, ...labelled(rows)]));
}

function homeText({ from, link, copy }: NonNullable<Adapter['home']>): string {
  const shared = link.length === 0 ? [] : [`shares ${link.join(', ')}`];
  const copied = copy.length === 0 ? [] : [`has copies of ${copy.join(', ')}`];
  return [`in place of ~/${from}`, ...shared, ...copied].join('; ');
}

function hookRows(hooks: HookNames): readonly (readonly [string, string])[] {
  const { begun, accepted, toolBegun, toolEnded, blocked, stopped, failed, ended } = hooks;
  const rows: readonly (readonly [string, string | null])[] = [
    ['it has begun', begun],
    ['it has the prompt', accepted],
    ['a tool begins', toolBegun],
    ['a tool has ended', toolEnded],
    ['it waits for a person', blocked.length === 0 ? null : blocked.join(', ')],
    ['it has stopped', stopped],
    ['it has failed', failed],
    ['it has ended', ended],
  ];
  return rows.flatMap(([what, name]) => (name === null ? [] : [[what, name] as const]));
}

function dialogText({ answer, approve, reject, cure }: DialogPattern): string {
  const who =
    answer !== null
      ? `is answered: ${answer.join(' ')}`
      : approve === null && reject === null
        ? 'a person must answer it in the terminal'
        : 'a person decides';
  return cure === null ? who : `${who}; ${cure}`;
}

/** The same as data; null is what it does not say. */
export function adapterJson(adapter: Adapter): Readonly<Record<string, Json>> {
  const { description, program, environment, home, files, terminal, limits } = adapter;
  return {
    description,
    channels: channelsOf(adapter),
    commands: Object.fromEntries(commandsOf(adapter)),
    environment: Object.fromEntries(Object.entries(environment).map(([name, text]) => [name, writtenText(text)])),
    home: home === null ? null : { ...home },
    files: files.map(({ path, format }) => ({ path: writtenText(path), format })),
    hooks: adapter.hooks === null ? {} : Object.fromEntries(hookRows(adapter.hooks)),
    dialogs: (terminal?.dialogs ?? []).map(({ name, pattern, answer, approve, reject, cure }) => ({
      name,
      pattern,
      answer,
      approve,
      reject,
      cure,
    })),
    limits: limits.map(({ pattern, reset }) => ({ pattern, reset })),
    program: program === null ? null : { name: program.name, tried: program.tried, install: program.install },
  };
}
