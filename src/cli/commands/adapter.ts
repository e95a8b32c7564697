// `meow adapter install|list|show|remove`: which agents workflows can use, and how each is started.

import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { isThere, putFolder, removeFolder, sourceOf, withSource } from '../../app/adapter-install.ts';
import type { CheckedAdapter, FoundAdapter } from '../../app/adapters.ts';
import { ADAPTER_FILE, Adapters, adaptersIn, checkAdapter, keysIn } from '../../app/adapters.ts';
import { findProject, type Project } from '../../app/project.ts';
import { readSettings, shownPath } from '../../app/sources.ts';
import { present, UsageError } from '../../base/errors.ts';
import { own } from '../../base/json.ts';
import { didYouMean } from '../../base/names.ts';
import { sanitize } from '../../base/sanitize.ts';
import { hasErrors } from '../../base/source.ts';
import { adapterJson, channelsOf, commandsOf, describeAdapter, labelled } from '../../view/adapter-lines.ts';
import { diagnosticJson } from '../../view/diagnostics.ts';
import type { Switches } from '../flags.ts';
import { EXIT, printLine, printLines, printResult, warn } from '../output.ts';
import { inColumns, paletteFor, printDiagnostics } from '../terminal.ts';

type AdapterOptions = Switches<'project' | 'force' | 'json'>;

interface Action {
  /** Its subject; null if it concerns everything. */
  readonly argument: string | null;
  readonly flags: readonly (keyof AdapterOptions)[];
  readonly perform: (project: Project, what: string, options: AdapterOptions) => number;
}

const ACTIONS: Readonly<Record<string, Action>> = {
  install: { argument: 'SOURCE', flags: ['project', 'force'], perform: install },
  list: { argument: null, flags: ['json'], perform: list },
  show: { argument: 'NAME', flags: ['json'], perform: show },
  remove: { argument: 'NAME', flags: ['project'], perform: remove },
};

export function adapter(name: string, what: string | undefined, options: AdapterOptions): number {
  const action = own(ACTIONS, name);
  if (action === undefined) {
    const meant = didYouMean(name, Object.keys(ACTIONS));
    throw new UsageError(`meow adapter cannot ${name}`, `${meant}the actions are install, list, show and remove`);
  }
  if (action.argument !== null && what === undefined) {
    throw new UsageError(
      `meow adapter ${name} needs a ${action.argument.toLowerCase()}`,
      `meow adapter ${name} ${action.argument}`,
    );
  }
  if (action.argument === null && what !== undefined) {
    throw new UsageError(`unexpected argument '${what}'`, 'its flags: meow help adapter');
  }
  const [other] = (Object.keys(options) as (keyof AdapterOptions)[]).filter((flag) => !action.flags.includes(flag));
  if (other !== undefined) {
    throw new UsageError(`meow adapter ${name} has no option '--${other}'`, 'its flags: meow help adapter');
  }
  return action.perform(findProject(), what ?? '', options);
}

function install(project: Project, text: string, { project: inProject, force }: AdapterOptions): number {
  const origin = inProject ? 'project' : 'user';
  const source = sourceOf(text, project.cwd);
  return withSource(source, (folder) => {
    if (!existsSync(join(folder, ADAPTER_FILE))) {
      const hint = 'an adapter is a folder with a file of that name: docs/adapters.md';
      throw new UsageError(`there is no ${ADAPTER_FILE} in ${text}`, hint);
    }
    // The fetched files are in a temporary folder.
    const file = source.kind === 'git' ? ADAPTER_FILE : shownPath(project, join(folder, ADAPTER_FILE));
    const checked = checkAdapter(folder, file, null);
    printProblems(checked);
    if (checked.adapter === null) {
      warn('nothing was installed');
      return EXIT.failed;
    }
    const { name, description } = checked.adapter;
    const target = join(adaptersIn(project, origin), name);
    const shown = shownPath(project, target);
    if (isThere(target) && !force) {
      throw new UsageError(`the adapter ${name} exists: ${shown}`, 'replace it with --force');
    }
    putFolder(folder, target);
    printLine(`installed ${name}${description === '' ? '' : ` (${sanitize(description)})`} in ${shown}`);
    printLine();
    printLine('It runs these commands with your rights. Read them before you use it.');
    printLines(labelled(commandsOf(checked.adapter)));
    printLine();
    printLine(`Show details:     meow adapter show ${name}`);
    printLine(`Use it:           adapter = "${name}" at a spawn step, or meow run FILE --adapter ${name}`);
    const found = present(new Adapters(project).find(name), `the adapter ${name} was installed and is not there`);
    if (found.origin !== origin) warn(`note: the project has an adapter ${name} of its own, which overrides this one`);
    if (found.shadows.includes('built in')) warn(`note: it overrides the built-in adapter ${name}`);
    return EXIT.done;
  });
}

function list(project: Project, _what: string, { json }: AdapterOptions): number {
  const adapters = new Adapters(project);
  const preferred = defaultOf(project, adapters);
  const all = adapters.all();
  if (json) {
    const objects = all.map((found) => ({
      ...headJson(found, preferred),
      description: found.adapter?.description ?? null,
      channels: found.adapter === null ? [] : channelsOf(found.adapter),
    }));
    return printResult(objects);
  }
  const rows = all.map((found) => [
    found.name,
    found.adapter === null ? '-' : channelsOf(found.adapter).join(', '),
    found.origin,
    `${sanitize(found.adapter?.description ?? `has an error: meow adapter show ${found.name}`)}${found.name === preferred ? ' (default)' : ''}`,
  ]);
  printLines(inColumns(['ADAPTER', 'CHANNELS', 'FROM', 'WHAT IT STARTS'], rows));
  return EXIT.done;
}

function show(project: Project, name: string, { json }: AdapterOptions): number {
  const adapters = new Adapters(project);
  const found = findAdapter(adapters, name);
  const preferred = defaultOf(project, adapters);
  if (json) {
    const more = found.adapter === null ? {} : adapterJson(found.adapter);
    const problems = found.diagnostics.map(diagnosticJson);
    printResult({ ...headJson(found, preferred), ...more, problems });
    return found.adapter === null ? EXIT.failed : EXIT.done;
  }
  printProblems(found);
  if (found.adapter === null) return EXIT.failed;
  const { description } = found.adapter;
  const about = description === '' ? '' : `: ${sanitize(description)}`;
  printLine(`${name}${about}${name === preferred ? ' (default)' : ''}`);
  const shadows = found.shadows.length === 0 ? '' : `; it overrides the one that is ${found.shadows.join(', and ')}`;
  const head = [
    ['from', `${found.origin}: ${found.file}${shadows}`],
    ['channels', channelsOf(found.adapter).join(', ')],
  ] as const;
  printLines([...labelled(head), ...describeAdapter(found.adapter, keysIn(found))]);
  return EXIT.done;
}

function remove(project: Project, name: string, { project: inProject }: AdapterOptions): number {
  const adapters = new Adapters(project);
  const found = findAdapter(adapters, name);
  const origin = inProject ? 'project' : 'user';
  const target = join(adaptersIn(project, origin), name);
  if (!isThere(target)) {
    if (found.origin === 'built in') {
      const hint = 'an adapter of your own with that name overrides it';
      throw new UsageError(`the adapter ${name} is built in and cannot be removed`, hint);
    }
    const command = `meow adapter remove ${name}${inProject ? '' : ' --project'}`;
    throw new UsageError(`there is no adapter ${shownPath(project, target)}`, `there is ${found.file}: ${command}`);
  }
  removeFolder(target);
  printLine(`removed ${shownPath(project, target)}`);
  const next = new Adapters(project).find(name);
  if (next !== null && found.origin === origin)
    warn(`note: ${name} now means the ${next.origin} adapter: ${next.file}`);
  return EXIT.done;
}

/** Every problem with its position; one without a position as a line. */
function printProblems({ diagnostics, problem }: CheckedAdapter): void {
  printDiagnostics(diagnostics, paletteFor(process.stderr));
  if (problem !== null && !hasErrors(diagnostics)) warn(`meow: ${problem}`);
}

function headJson({ name, origin, file, shadows, adapter: read, problem }: FoundAdapter, preferred: string): object {
  return { name, default: name === preferred, origin, file, shadows, valid: read !== null, problem };
}

function defaultOf(project: Project, adapters: Adapters): string {
  return readSettings(project).config.defaultAdapter ?? adapters.default();
}

function findAdapter(adapters: Adapters, name: string): FoundAdapter {
  const found = adapters.find(name);
  if (found !== null) return found;
  const { message, hint } = present(adapters.refusal(name), `the adapter ${name} is there`);
  throw new UsageError(message, hint);
}
