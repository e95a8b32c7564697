// RUN_VALIDATION: validators by name, or as scripts.

import { own } from '../../base/json.ts';
import type { Place } from '../../base/source.ts';
import type { CommandValidator, Validator, Witness } from '../../ir/conductor.ts';
import { globCovers } from '../../ir/policy.ts';
import { namesOf } from '../keys.ts';
import { listed, missing, type Report, suggest } from '../report.ts';
import { booleanAt, durationAt, wrongType } from '../yaml-fields.ts';
import { isScalar, type YamlMap, type YamlScalar, type YamlValue } from '../yaml-tree.ts';
import {
  artifactsAt,
  checkDuplicates,
  checkId,
  checkWords,
  cwdAt,
  isId,
  listAt,
  neededText,
  strictKeys,
  textsAt,
  tidyPath,
  wordAt,
} from './fields.ts';
import { SCRIPT_KEYS, VALIDATOR_KEYS, VALIDATOR_KINDS } from './keys.ts';
import { overLimits, readLimits } from './limits.ts';
import { named, type Outline, type Particulars, type Reading } from './syntax.ts';

/** Searched in the project if the configuration registers none. */
const USUAL = ['tests', 'lint', 'typecheck'];

const EXAMPLE = 'run: [tests, lint]';

interface PlacedValidator {
  readonly validator: Validator;
  readonly place: Place;
}

export function readRunValidation(reading: Reading, step: Outline, witness: Witness | null): Particulars {
  const { report, defaults, config } = reading;
  const what = named(step);
  const limits = overLimits(readLimits(report, step.map, what, false), defaults.limits);
  const list = listAt(report, step.map, 'run', EXAMPLE);
  if (!step.map.entries.has('run')) missing(report, step.place, what, 'run', `For example ${EXAMPLE}.`);
  if (list?.items.length === 0) {
    report.error('empty-run', list.place, `${what} runs nothing`, `For example ${EXAMPLE}.`);
  }
  const read = list?.items.flatMap((item) => readValidator(reading, item, limits.timeoutMs) ?? []) ?? [];
  const validators = read.map(({ validator }) => validator);
  const placed = read.map(({ validator: { id }, place }) => ({ id, place }));
  checkDuplicates(report, placed, (id) => `there are two validators "${id}" in this step`);
  const proposes = ({ validator }: PlacedValidator): boolean =>
    validator.mayProposeGoldens !== false && validator.artifacts.some(mayBeReport);
  const harness = read.find(proposes)?.place ?? null;
  const idleMs = limits.idleMs || null;
  return { harness, spec: { kind: 'run_validation', validators, idleMs, envAllow: config.envAllow, witness } };
}

/** `timeoutMs`: default for validators without one. */
function readValidator(reading: Reading, item: YamlValue, timeoutMs: number | null): PlacedValidator | null {
  if (isScalar(item)) {
    const validator = registered(reading, item, timeoutMs);
    return validator === null ? null : { validator, place: item.place };
  }
  if (item.kind === 'map') return readSpec(reading, item, timeoutMs);
  return wrongType(reading.report, item, 'a validator must be a name or a map', `For example ${EXAMPLE}.`);
}

const SPEC_HINT = 'For example { id: harness, kind: script, entrypoint: scripts/check.sh }.';

function readSpec(reading: Reading, map: YamlMap, defaultMs: number | null): PlacedValidator | null {
  const { report } = reading;
  const { place } = map;
  const what = 'the validator';
  const id = neededText(report, map, 'id', { place, what, hint: SPEC_HINT });
  if (id !== null) checkId(report, id, 'name for a validator');
  const kind = wordAt(report, map, 'kind', VALIDATOR_KINDS);
  if (!map.entries.has('kind')) missing(report, place, what, 'kind', 'Write kind: script, or kind: builtin.');
  const timeoutMs = map.entries.has('timeout') ? durationAt(report, map, 'timeout') || null : defaultMs;
  if (kind === 'builtin') return readBuiltin(reading, map, id, timeoutMs);
  strictKeys(report, map, namesOf([...VALIDATOR_KEYS, ...SCRIPT_KEYS]), what);
  const hint = 'For example entrypoint: scripts/check.sh.';
  const entrypoint = kind === null ? null : neededText(report, map, 'entrypoint', { place, what, hint });
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
      artifacts,
      timeoutMs,
      ...goldensAt(report, map),
    },
  };
}

function goldensAt(report: Report, map: YamlMap): Pick<Validator, 'mayProposeGoldens'> {
  return booleanAt(report, map, 'may_propose_goldens') === false ? { mayProposeGoldens: false } : {};
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
function readBuiltin(
  reading: Reading,
  map: YamlMap,
  id: YamlScalar | null,
  timeoutMs: number | null,
): PlacedValidator | null {
  const { report } = reading;
  const elsewhere = (key: string): string | null =>
    namesOf(SCRIPT_KEYS).includes(key) ? 'Only a validator of kind script has it.' : null;
  strictKeys(report, map, namesOf(VALIDATOR_KEYS), 'the validator of kind builtin', elsewhere);
  const cwd = cwdAt(report, map);
  const artifacts = artifactsAt(report, map);
  const found = id === null ? null : registered(reading, id, timeoutMs);
  if (id === null || found === null) return null;
  const validator = {
    ...found,
    cwd: cwd ?? found.cwd,
    artifacts: artifacts.length > 0 ? artifacts : found.artifacts,
    timeoutMs: map.entries.has('timeout') ? timeoutMs : found.timeoutMs,
    ...goldensAt(report, map),
  };
  return { validator, place: id.place };
}

/** From the configuration, otherwise from the project. */
function registered(reading: Reading, written: YamlScalar, timeoutMs: number | null): CommandValidator | null {
  const { report, config } = reading;
  const id = written.text;
  const configured = own(config.validators, id);
  if (configured !== undefined) {
    return { kind: 'builtin', id, ...configured, timeoutMs: configured.timeoutMs ?? timeoutMs };
  }
  const found = reading.validators(id);
  if (found !== null) {
    reading.note(`validator ${id}: ${found.command} (${found.from})`);
    return { kind: 'builtin', id, command: found.command, cwd: null, artifacts: [], timeoutMs };
  }
  const known = [...new Set([...Object.keys(config.validators), ...USUAL])];
  const section = `[validators.${isId(id) ? id : 'NAME'}] with command = "…" in .meow/config.toml.`;
  const hint = (): string =>
    USUAL.includes(id)
      ? `Register it: ${section}`
      : suggest(id, known, `Known: ${listed(known)}; register it: ${section}`);
  return report.error('unknown-validator', written.place, `there is no validator ${JSON.stringify(id)}`, hint);
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
