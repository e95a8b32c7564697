// `meow prove`: compiles a workflow, reads the claims of its test file, and explores everything that can happen to a run.

import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';

import { UsageError } from '../base/errors.ts';
import type { Diagnostic } from '../base/source.ts';
import { readClaims } from '../languages/test-file/claims.ts';
import type { Claim } from '../ir/claim.ts';
import type { Program } from '../ir/program.ts';
import { Exploration, type Explored } from '../prove/explore.ts';
import { type Proof, proofOf } from '../prove/proof.ts';
import { writtenNames } from '../prove/unreached.ts';
import { adaptersIn, type Prices } from '../prove/worst.ts';
import { ABSENT, tolerate } from '../sys/errors.ts';
import type { Adapters } from './adapters.ts';
import { findWorkflow } from './compile.ts';
import { measuredPrices } from './measured-prices.ts';
import { lacksOnlyVariables, prepareRun } from './prepare-run.ts';
import type { Project } from './project.ts';
import { type Settings, shownPath } from './sources.ts';

export { proofLines } from '../prove/lines.ts';
export type { Proof } from '../prove/proof.ts';

/** As written on the command line. */
export interface ProveFlags {
  readonly reference: string;
  readonly var?: readonly string[];
  readonly visits?: number;
  readonly states?: number;
  /** `ADAPTER=USD` */
  readonly price?: readonly string[];
}

export type Proved = Readonly<
  /** `isUsage`: only variables are missing, or the test file is wrong. */
  | { kind: 'refused'; diagnostics: readonly Diagnostic[]; isUsage: boolean }
  | { kind: 'proved'; diagnostics: readonly Diagnostic[]; proof: Proof; bound: string | null }
>;

const VISITS = 3;
const STATES = 100_000;
/** How long it explores before it looks whether somebody has interrupted it. */
const SLICE_MS = 50;

export async function proveWorkflow(
  project: Project,
  settings: Settings,
  adapters: Adapters,
  flags: ProveFlags,
  isCancelled: () => boolean,
): Promise<Proved> {
  const { reference, visits = VISITS, states = STATES } = flags;
  const passedPrices = readPrices(flags.price ?? []);
  const given = flags.var === undefined ? {} : { var: flags.var };
  const prepared = await prepareRun(project, settings, adapters, { reference, ...given, dryRun: true, allowance: {} });
  const { ready, diagnostics } = prepared;
  if (ready === null) return { kind: 'refused', diagnostics, isUsage: lacksOnlyVariables(diagnostics) };
  const { program, request } = ready;
  const { path } = findWorkflow(project, reference, null);
  const read = readTestFile(project, path, program);
  if (read.claims === null) return { kind: 'refused', diagnostics: read.diagnostics, isUsage: true };
  const { claims } = read;
  const { variables } = request;
  const scripts = readScripts(program);
  const exploration = new Exploration({ program, variables, claims, scripts, visitsMax: visits, statesMax: states });
  for (let from = performance.now(); !isCancelled() && !exploration.advance(1); ) {
    if (performance.now() - from < SLICE_MS) continue;
    await setImmediate();
    from = performance.now();
  }
  const explored = exploration.result();
  const unpriced = [...adaptersIn(explored)].filter((adapter) => !Object.hasOwn(passedPrices, adapter));
  const prices = { ...(await measuredPrices(project, new Set(unpriced))), ...passedPrices };
  const names = new Set((flags.var ?? []).map((text) => text.slice(0, text.indexOf('='))));
  const passed = Object.fromEntries(Object.entries(variables).filter(([name]) => names.has(name)));
  const proof = proofOf(explored, { program, claims, visitsMax: visits, prices, given: passed });
  return {
    kind: 'proved',
    diagnostics: [...diagnostics, ...read.diagnostics],
    proof,
    bound: boundText(explored, visits, states),
  };
}

/** `deploy.test.toml` beside `deploy.meow.toml`, `deploy.yaml` or the folder `deploy`. */
function testFileOf(workflow: string): string {
  const name = basename(workflow).replace(/(?:\.meow\.toml|\.toml|\.ya?ml)$/, '');
  return join(dirname(workflow), `${name}.test.toml`);
}

function readTestFile(
  project: Project,
  workflow: string,
  program: Program,
): { readonly claims: readonly Claim[] | null; readonly diagnostics: readonly Diagnostic[] } {
  const path = testFileOf(workflow);
  const text = tolerate(ABSENT, null, () => readFileSync(path, 'utf8'));
  if (text === null) return { claims: [], diagnostics: [] };
  return readClaims(text, shownPath(project, path), writtenNames(program));
}

/** Scripts of a state machine are files; their texts show what they answer. A file that cannot be read shows nothing. */
function readScripts({ blocks }: Program): ReadonlyMap<string, string> {
  const commands = Object.values(blocks).flatMap(({ steps }) =>
    steps.flatMap(({ act }) => {
      const effect = act.kind === 'effect' && act.effect.kind === 'command' ? act.effect : null;
      return effect !== null && effect.steering !== null && typeof effect.script === 'string' ? [effect.script] : [];
    }),
  );
  return new Map(
    commands.flatMap((command) => {
      const [, path] = /^exec '([^']+)'$/.exec(command) ?? [];
      const text =
        path === undefined ? null : tolerate(['EACCES', 'EISDIR', ...ABSENT], null, () => readFileSync(path, 'utf8'));
      return text === null ? [] : [[command, text] as const];
    }),
  );
}

function readPrices(texts: readonly string[]): Prices {
  return Object.fromEntries(
    texts.map((text) => {
      const [, adapter, usd = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
      const price = Number(usd);
      if (adapter === undefined || usd.trim() === '' || !Number.isFinite(price) || price < 0)
        throw new UsageError(`--price ${text} is not a price`, 'write --price ADAPTER=USD, such as --price sim=0.40');
      return [adapter, { usd: price, from: '--price' }];
    }),
  );
}

function boundText({ bound }: Explored, visits: number, states: number): string | null {
  switch (bound) {
    case null:
      return null;
    case 'states':
      return `more than ${String(states)} states (--states)`;
    case 'visits':
      return `a block is entered inside itself or by parallel lanes, or a long loop repeated, more than ${String(visits)} times (--visits)`;
    case 'cancelled':
      return 'it was interrupted';
  }
}
