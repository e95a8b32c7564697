// RUN_VALIDATION: validators by name, or as scripts.

import { own } from '../../base/json.ts';
import type { Place } from '../../base/source.ts';
import type { CommandValidator, Validator, Witness } from '../../ir/conducted.ts';
import { globCovers } from '../../ir/policy.ts';
import { listed, suggest } from '../report.ts';
import { durationAt } from '../yaml-fields.ts';
import type { YamlMap, YamlScalar, YamlValue } from '../yaml-tree.ts';
import { isScalar, listAt, missingKey, neededText, shown, strictKeys, textsAt, wordAt } from './fields.ts';
import { ID_HINT, isId } from './ids.ts';
import { overLimits, readLimits } from './limits.ts';
import { tidyPath } from './path-problem.ts';
import { artifactsAt, checkWords, cwdAt } from './paths.ts';
import type { Reading } from './reading.ts';
import type { Outline, Particulars } from './syntax.ts';
import { named, UNSAID } from './syntax.ts';

/** Searched in the project if the configuration registers none. */
const USUAL = ['tests', 'lint', 'typecheck'];

const EXAMPLE = 'run: [tests, lint]';

interface Read {
  readonly validator: Validator;
  readonly place: Place;
}

export function readRunValidation(reading: Reading, step: Outline, witness: Witness | null): Particulars {
  const { report, defaults } = reading;
  const what = named(step);
  const limits = overLimits(readLimits(report, step.map, what, false), defaults.limits);
  const list = listAt(report, step.map, 'run', EXAMPLE);
  if (!step.map.entries.has('run')) missingKey(report, step.place, what, 'run', `For example ${EXAMPLE}.`);
  if (list?.items.length === 0) {
    report.error('empty-run', list.place, `${what} runs nothing`, `For example ${EXAMPLE}.`);
  }
  const read = list?.items.flatMap((item) => readEntry(reading, item, limits.timeoutMs) ?? []) ?? [];
  checkDouble(reading, read);
  const harness = read.find(({ validator }) => validator.artifacts.some(mayBeReport));
  return {
    ...UNSAID,
    harness: harness?.place ?? null,
    spec: {
      kind: 'run_validation',
      validators: read.map(({ validator }) => validator),
      idleMs: limits.idleMs || null,
      envAllow: reading.config.envAllow,
      witness,
    },
  };
}

/** `timeoutMs`: default for validators without one. */
function readEntry(reading: Reading, item: YamlValue, timeoutMs: number | null): Read | null {
  if (isScalar(item)) {
    const validator = registered(reading, item, timeoutMs);
    return validator === null ? null : { validator, place: item.place };
  }
  if (item.kind === 'map') return readSpec(reading, item, timeoutMs);
  const message = `a validator must be a name or a map, got ${shown(item)}`;
  reading.report.error('wrong-type', item.place, message, `For example ${EXAMPLE}.`);
  return null;
}

const SPEC_HINT = 'For example { id: harness, kind: script, entrypoint: scripts/check.sh }.';

function readSpec(reading: Reading, map: YamlMap, timeoutMs: number | null): Read | null {
  const { report } = reading;
  const what = 'the validator';
  const id = neededText(report, map, 'id', { place: map.place, what, hint: SPEC_HINT });
  if (id !== null && !isId(id.text)) {
    report.error('invalid-id', id.place, `${JSON.stringify(id.text)} is not a valid name for a validator`, ID_HINT);
  }
  const kind = wordAt(report, map, 'kind', ['builtin', 'script'] as const);
  if (!map.entries.has('kind')) missingKey(report, map.place, what, 'kind', 'Write kind: script, or kind: builtin.');
  const timeMs = map.entries.has('timeout') ? durationAt(report, map, 'timeout') || null : timeoutMs;
  if (kind === 'builtin') return readBuiltin(reading, map, id, timeMs);
  const known = ['id', 'kind', 'entrypoint', 'args', 'cwd', 'artifacts', 'timeout'];
  strictKeys(report, map, known, what);
  const hint = 'For example entrypoint: scripts/check.sh.';
  const entrypoint = kind === null ? null : neededText(report, map, 'entrypoint', { place: map.place, what, hint });
  if (entrypoint !== null) {
    checkWords(report, 'entrypoint', entrypoint);
    checkListed(reading, entrypoint);
  }
  const args = textsAt(report, map, 'args', 'args: ["--report", "harness_report.json"]') ?? [];
  for (const arg of args) checkWords(report, 'args', arg);
  const artifacts = artifactsAt(report, map);
  const cwd = cwdAt(report, map);
  if (id === null || entrypoint === null) return null;
  return {
    place: id.place,
    validator: {
      kind: 'script',
      id: id.text,
      entrypoint: entrypoint.text,
      args: args.map(({ text }) => text),
      cwd,
      artifacts: artifacts.map(({ text }) => text),
      timeoutMs: timeMs,
    },
  };
}

/** Programs that are neither in the run directory nor listed are not started. In doubt nothing is reported. */
function checkListed({ report, config, artifactsDir }: Reading, { text, place }: YamlScalar): void {
  const path = tidyPath(text);
  const inRun = ['${run_dir}/', `${artifactsDir}/\${run_id}/`].some((folder) => path.startsWith(folder));
  const isListed = config.allowedEntrypoints.some((glob) => /[?[{\\]/.test(glob) || globCovers(tidyPath(glob), path));
  if (inRun || isListed || /\$\{(?!run_id\})/.test(path)) return;
  const message = `the entrypoint ${text} is neither in the run's directory nor listed: it will not be started`;
  const hint = `List it: allowed_entrypoints = [${JSON.stringify(path)}] below [conductor] in .meow/config.toml.`;
  report.warning('unlisted-entrypoint', place, message, hint);
}

/** The map overrides the registered values. */
function readBuiltin(reading: Reading, map: YamlMap, id: YamlScalar | null, timeoutMs: number | null): Read | null {
  const { report } = reading;
  const elsewhere = (key: string): string | null =>
    key === 'entrypoint' || key === 'args' ? 'Only a validator of kind script has it.' : null;
  strictKeys(report, map, ['id', 'kind', 'cwd', 'artifacts', 'timeout'], 'the validator of kind builtin', elsewhere);
  const cwd = cwdAt(report, map);
  const artifacts = artifactsAt(report, map).map(({ text }) => text);
  const found = id === null ? null : registered(reading, id, timeoutMs);
  if (id === null || found === null) return null;
  const validator = {
    ...found,
    cwd: cwd ?? found.cwd,
    artifacts: artifacts.length > 0 ? artifacts : found.artifacts,
    timeoutMs: map.entries.has('timeout') ? timeoutMs : found.timeoutMs,
  };
  return { validator, place: id.place };
}

/** From the configuration, otherwise from the project. */
function registered(
  reading: Reading,
  { text: id, place }: YamlScalar,
  timeoutMs: number | null,
): CommandValidator | null {
  const { report, config, findValidator, note } = reading;
  const configured = own(config.validators, id);
  if (configured !== undefined) {
    return { kind: 'builtin', id, ...configured, timeoutMs: configured.timeoutMs ?? timeoutMs };
  }
  const found = findValidator(id);
  if (found !== null) {
    note(`validator ${id}: ${found.command} (${found.from})`);
    return { kind: 'builtin', id, command: found.command, cwd: null, artifacts: [], timeoutMs };
  }
  const known = [...new Set([...Object.keys(config.validators), ...USUAL])];
  const cure = USUAL.includes(id)
    ? `Register it: [validators.${id}] with command = "…" in .meow/config.toml.`
    : `Known: ${listed(known)}; register it: [validators.${isId(id) ? id : 'NAME'}] with command = "…" in .meow/config.toml.`;
  const message = `there is no validator ${JSON.stringify(id)}`;
  const others = known.filter((name) => name !== id);
  report.error('unknown-validator', place, message, () => (USUAL.includes(id) ? cure : suggest(id, others, cure)));
  return null;
}

function checkDouble({ report }: Reading, read: readonly Read[]): void {
  const seen = new Map<string, Place>();
  for (const { validator, place } of read) {
    const before = seen.get(validator.id);
    seen.set(validator.id, before ?? place);
    if (before === undefined) continue;
    const message = `there are two validators "${validator.id}" in this step`;
    report.error('duplicate-id', place, message, 'Give one of them another id.', [
      { message: 'the first one', place: before },
    ]);
  }
}

const REPORT = 'harness_report.json';

/** Whether a glob may match a harness report: by name, or because it matches all names. */
function mayBeReport(glob: string): boolean {
  const name = glob.split('/').at(-1) ?? '';
  return (
    /harness_report[^/]*\.json$/i.test(name) ||
    globCovers(glob, REPORT) ||
    (!/^\*+$/.test(name) && globCovers(name, REPORT))
  );
}
