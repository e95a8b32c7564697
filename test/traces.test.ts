// Runs every *.trace file: a command, a line of dashes, the decisions of the kernel. Update with UPDATE=1, read the
// diff, and commit it only if you can explain each changed line. After every command the journal so far is replayed
// and must give the same state.
//
//   program …            finish EFFECT ok [route=R] [session=S] [follow=F]… [name=value]…
//   start [name=value]…  finish EFFECT fail [KIND] [session=S] [until=1h] [parks]   both: [usd=0.2] [tokens=9] [ended=30s]
//   gate NAME approve|reject [MESSAGE] [asking=N] [by=NAME] [proof=key|signature|agent]   refuse WARNING…
//   ask GATE STEP [prompt=TEXT] [approver=NAME]…   expire GATE STEP   release STEP
//   report STEP [name=value]…  event TYPE [ID]   receive STEP NUMBER
//   time 30s             early TIMER (a deadline is reported now, whether it is due or not)
//   stop [force] [anew]                pause          resume [only-pending] [--usd=2] [++stepsMax=9]

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import type { Json } from '../src/base/json.ts';
import { parseDuration } from '../src/base/time.ts';
import { fold } from '../src/kernel/apply.ts';
import { type Delivery, type Outcome, type Progress, success } from '../src/ir/effect.ts';
import { failure, type FailureKind } from '../src/ir/failure.ts';
import type { Usage } from '../src/ir/output.ts';
import { type Allowance, type Budgets, type Limits, UNLIMITED } from '../src/ir/program.ts';
import { decide } from '../src/kernel/decide.ts';
import type { Decision, JournalRecord } from '../src/kernel/decision.ts';
import type { Input } from '../src/kernel/input.ts';
import type { Extra, OthersSpending } from '../src/kernel/spending.ts';
import { initialState, type RunState } from '../src/kernel/state.ts';
import { fingerprint } from './kernel-rig/fingerprint.ts';
import { parseFollow, parseProgram } from './kernel-rig/program-text.ts';

const FOLDER = join(import.meta.dirname, 'traces');
const NOTHING = '(nothing)';

for (const name of readdirSync(FOLDER).filter((file) => file.endsWith('.trace'))) {
  test(`trace: ${name}`, () => {
    const path = join(FOLDER, name);
    const have = readFileSync(path, 'utf8');
    const want = play(have);
    if (process.env['UPDATE'] === '1') writeFileSync(path, want);
    else expect(have).toBe(want);
  });
}

function play(text: string): string {
  const sections = text.trimEnd().split(/\n\n+/);
  let run = new TraceRun([]);
  const played = sections.map((section) => {
    const [command = ''] = section.split('\n----');
    const lines = command.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const [first = '', ...rest] = lines;
    if (first === '') return section;
    if (first === 'program') {
      run = new TraceRun(rest);
      return `${command}\n----\nok`;
    }
    return `${command}\n----\n${run.execute(first)}`;
  });
  return `${played.join('\n\n')}\n`;
}

class TraceRun {
  readonly #state: RunState;
  readonly #records: JournalRecord[] = [];
  #now = 0;

  constructor(lines: readonly string[]) {
    this.#state = initialState(parseProgram(lines.length === 0 ? ['a'] : lines));
  }

  execute(line: string): string {
    const [verb = '', ...words] = line.split(' ');
    const said = verb === 'time' ? this.#pass(words[0] ?? '') : this.#take(inputOf(verb, words));
    checkReplay(this.#state, this.#records, line);
    return said.join('\n') || NOTHING;
  }

  #take(input: Input): string[] {
    const decisions = decide(this.#state, input, this.#now);
    if (decisions.length > 0) this.#records.push({ seq: this.#records.length + 1, at: this.#now, input, decisions });
    return decisions.map(describeDecision);
  }

  /** Advances the time, and passes each expired deadline to the kernel in order. */
  #pass(duration: string): string[] {
    const until = this.#now + (parseDuration(duration) ?? 0);
    const said: string[] = [];
    for (;;) {
      const due = [...this.#state.timers.values()].filter(({ at }) => at <= until).toSorted((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#now = Math.max(this.#now, due.at);
      const lines = this.#take({ kind: 'deadline-passed', timer: due.id });
      if (lines.length === 0) break;
      said.push(...lines);
    }
    this.#now = until;
    return said;
  }
}

function checkReplay(state: RunState, records: readonly JournalRecord[], line: string): void {
  const replayed = fold(state.program, records);
  expect(fingerprint(replayed), `replay after: ${line}`).toEqual(fingerprint(state));
}

function inputOf(verb: string, words: readonly string[]): Input {
  const pairs = words
    .filter((word) => word.includes('='))
    .map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)] as const);
  switch (verb) {
    case 'start': {
      const allowance = allowanceIn(pairs) ?? UNLIMITED;
      const variables = Object.fromEntries(pairs.filter(([key]) => !/^(?:--|\$)/.test(key)));
      const budgets = budgetsIn(pairs);
      const request = {
        id: 'wf-trace',
        mark: 'm',
        variables,
        meta: {},
        cwd: '.',
        allowOutside: false,
        allowance,
        ...(budgets === null ? {} : { budgets }),
      };
      return { kind: 'run-requested', request, programHash: 'hash' };
    }
    case 'finish': {
      // Effect ids of agents contain spaces.
      const at = words.findIndex((word) => word === 'ok' || word === 'fail');
      const effect = words.slice(0, at).join(' ');
      const ended = pairs.find(([key]) => key === 'ended')?.[1];
      const found = ended === undefined ? {} : { endedAt: parseDuration(ended) ?? 0 };
      const told = pairs.filter(([key]) => key !== 'ended');
      return { kind: 'effect-finished', effect, outcome: { ...outcomeOf(words.slice(at), told), ...found } };
    }
    case 'note': {
      const effect = words.filter((word) => !word.includes('=')).join(' ');
      return { kind: 'effect-progressed', effect, progress: progressIn(pairs) };
    }
    case 'gate': {
      const [gate = '', how, message = null] = words.filter((word) => !word.includes('='));
      const { asking, by = 'ann', proof } = Object.fromEntries(pairs) as Readonly<Record<string, string | undefined>>;
      const verdict = { approved: how === 'approve', by, notes: null, answer: null };
      const time = '2026-11-15T15:27:33Z';
      const proofs = { key: { kind: 'key', time }, signature: { kind: 'signature', time, signature: '…' } } as const;
      const shown = proof === undefined ? {} : { proof: proofs[proof as 'key'] ?? ({ kind: 'agent' } as const) };
      const about = asking === undefined ? {} : { asking: Number(asking) };
      return { kind: 'gate-decided', gate, verdict: { ...verdict, ...shown }, message, ...about };
    }
    case 'refuse':
      return { kind: 'verdict-refused', message: words.join(' ') };
    case 'early':
      return { kind: 'deadline-passed', timer: words.join(' ') };
    case 'ask': {
      const approvers = pairs.filter(([key]) => key === 'approver').map(([, name]) => name);
      const prompt = pairs.find(([key]) => key === 'prompt')?.[1] ?? null;
      const listed = approvers.length === 0 ? {} : { approvers };
      return { kind: 'gate-asked', gate: words[0] ?? '', step: words[1] ?? '', prompt, ...listed };
    }
    case 'expire':
      return { kind: 'gate-expired', gate: words[0] ?? '', step: words[1] ?? '' };
    case 'release':
      return { kind: 'wait-released', step: words[0] ?? '' };
    case 'report':
      return {
        kind: 'step-reported',
        step: words[0] ?? '',
        outputs: Object.fromEntries(pairs),
        notes: null,
        message: null,
      };
    case 'event': {
      const [type = '', id = type] = words.filter((word) => !word.includes('='));
      return { kind: 'event-emitted', event: { id, type, agent: null, data: Object.fromEntries(pairs) } };
    }
    case 'receive':
      return { kind: 'event-received', step: words[0] ?? '', event: Number(words[1]), asking: null };
    case 'stop':
      return {
        kind: 'stop-requested',
        by: 'ann',
        force: words.includes('force'),
        ...(words.includes('anew') ? { replaces: true } : {}),
      };
    case 'pause':
      return { kind: 'pause-requested', reason: 'asked to' };
    case 'resume':
      return {
        kind: 'run-resumed',
        retryFailed: !words.includes('only-pending'),
        allowance: allowanceIn(pairs),
        ...limitsIn(pairs),
        ...extraIn(pairs),
      };
    case 'others':
      return { kind: 'budgets-read', others: othersIn(Object.fromEntries(pairs)) };
    default:
      throw new Error(`no such command in a trace: ${verb}`);
  }
}

function allowanceIn(pairs: readonly (readonly [string, string])[]): Allowance | null {
  const allowed = pairs.filter(([key]) => key.startsWith('--')).map(([key, value]) => [key.slice(2), Number(value)]);
  return allowed.length === 0 ? null : { ...UNLIMITED, ...(Object.fromEntries(allowed) as Partial<Allowance>) };
}

/** `$run`, `$agent`: dollars; `$reserve`; `$days`, `$relatives`. */
function budgetsIn(pairs: readonly (readonly [string, string])[]): Budgets | null {
  const given = Object.fromEntries(pairs) as Readonly<Record<string, string | undefined>>;
  if (!pairs.some(([key]) => key.startsWith('$'))) return null;
  const { $run, $agent, $reserve = '0.5', $days, $relatives } = given;
  const dollars = (text: string | undefined): number | null => (text === undefined ? null : Number(text));
  const limits = { runUsd: dollars($run), agentUsd: dollars($agent), reserveUsd: Number($reserve) };
  return { ...limits, days: $days !== undefined, relatives: $relatives !== undefined };
}

function extraIn(pairs: readonly (readonly [string, string])[]): { readonly extra?: Partial<Extra> } {
  const extra = pairs.find(([key]) => key === '$extra')?.[1];
  return extra === undefined ? {} : { extra: { usd: Number(extra) } };
}

/** `day`: its limit in dollars; `spent` and `reserved` by other runs; `tree`: spent by runs of the same origin. */
function othersIn({ day, spent, reserved, tree }: Readonly<Record<string, string | undefined>>): OthersSpending {
  const figures = { since: 0, spent: Number(spent ?? 0), reserved: Number(reserved ?? 0) };
  return {
    tree: { usd: Number(tree ?? 0), tokens: 0, reservedUsd: 0, reservedTokens: 0 },
    days: day === undefined ? [] : [{ budget: 'day_usd', limit: Number(day), ...figures }],
    known: {},
  };
}

function limitsIn(pairs: readonly (readonly [string, string])[]): { readonly limits?: Partial<Limits> } {
  const limits = pairs.filter(([key]) => key.startsWith('++')).map(([key, value]) => [key.slice(2), Number(value)]);
  return limits.length === 0 ? {} : { limits: Object.fromEntries(limits) as Partial<Limits> };
}

function outcomeOf(words: readonly string[], pairs: readonly (readonly [string, string])[]): Outcome {
  if (words[0] === 'fail') {
    const [named = 'exit-nonzero'] = words.slice(1).filter((word) => !word.includes('=') && word !== 'parks');
    const kind = named as FailureKind;
    const session = pairs.find(([key]) => key === 'session')?.[1] ?? null;
    const until = pairs.find(([key]) => key === 'until')?.[1];
    const retryAt = until === undefined ? null : parseDuration(until);
    const reprompt = pairs.find(([key]) => key === 'reprompt')?.[1] ?? null;
    const parks = words.includes('parks') ? { parks: true } : {};
    const more = { session, retryAt, reprompt, usage: usageIn(pairs), ...parks };
    return { kind: 'failure', failure: failure(kind, kind, more) };
  }
  const special = new Set(['route', 'session', 'follow', 'usd', 'tokens', 'exit_code', 'items']);
  const value = (name: string): string | null => pairs.find(([key]) => key === name)?.[1] ?? null;
  const follows = pairs.filter(([key]) => key === 'follow').map(([, text]) => parseFollow(text));
  const exit = value('exit_code');
  const items = value('items');
  const outputs = {
    ...Object.fromEntries(pairs.filter(([key]) => !special.has(key))),
    ...(exit === null ? {} : { exit_code: Number(exit) }),
    ...(items === null ? {} : { items: JSON.parse(items) as Json }),
  };
  return success(outputs, {
    usage: usageIn(pairs),
    route: value('route'),
    session: value('session'),
    follows: follows.length === 0 ? null : follows,
  });
}

/** `dialog=none`: the question is gone. */
function progressIn(pairs: readonly (readonly [string, string])[]): Progress {
  const { session, delivery, dialog } = Object.fromEntries(pairs) as Readonly<Record<string, string | undefined>>;
  return {
    ...(session === undefined ? {} : { session }),
    ...(delivery === undefined ? {} : { delivery: delivery as Delivery }),
    ...(dialog === undefined ? {} : { dialog: dialog === 'none' ? null : { name: dialog, text: `${dialog}?` } }),
  };
}

function usageIn(pairs: readonly (readonly [string, string])[]): Usage | null {
  const value = (name: string): number | null => {
    const text = pairs.find(([key]) => key === name)?.[1];
    return text === undefined ? null : Number(text);
  };
  const usage = { usd: value('usd'), tokens: value('tokens') };
  return usage.usd === null && usage.tokens === null ? null : usage;
}

function describeDecision(decision: Decision): string {
  switch (decision.kind) {
    case 'frame-opened': {
      const { id, owner, join, caller, replaces, forkedFrom, variables, session } = decision.frame;
      const facts = [
        owner === null ? '' : ` below ${owner} (${join})`,
        caller === null ? '' : ` called by ${caller}`,
        replaces === null ? '' : ` in place of ${replaces}`,
        forkedFrom === null ? '' : ` forked from ${forkedFrom}`,
        session.kind === 'fresh' ? '' : ` (${session.kind} ${session.id})`,
        Object.keys(variables).length === 0 ? '' : ` with ${JSON.stringify(variables)}`,
      ];
      return `frame-opened ${JSON.stringify(id)}${facts.join('')}`;
    }
    case 'program-grown':
      return `program-grown ${decision.part.path} at ${decision.part.entry}`;
    case 'steps-added':
      return `steps-added ${decision.steps.join(' ')}`;
    case 'step-started': {
      const { effect, timeoutAt, agent } = decision;
      const asks =
        effect === null
          ? ''
          : effect.kind === 'command'
            ? ` $ ${shown(effect.script)}`
            : effect.kind === 'turn' || effect.kind === 'prompt'
              ? ` > ${shown(effect.prompt)}`
              : effect.kind === 'gate'
                ? ' ?'
                : ` ${effect.kind}`;
      return `step-started ${decision.step}#${decision.attempt}${asks}${agent === null ? '' : ` by ${agent}`}${timeoutAt === null ? '' : ` until ${timeoutAt / 1000}s`}`;
    }
    case 'step-done':
    case 'step-answered':
    case 'step-recovered':
      return `${decision.kind} ${decision.step}${Object.keys(decision.outputs).length === 0 ? '' : ` ${JSON.stringify(decision.outputs)}`}`;
    case 'step-failed':
      return `step-failed ${decision.step} ${decision.failure.kind}: ${decision.handling}${decision.failure.message === decision.failure.kind ? '' : ` (${decision.failure.message})`}`;
    case 'step-failed-once':
      return `step-failed-once ${decision.step} ${decision.failure.kind}, again at ${decision.retryAt / 1000}s${decision.counts ? '' : ', not counted'}`;
    case 'step-parked':
      return `step-parked ${decision.step} ${decision.failure.kind}`;
    case 'steps-skipped':
      return `steps-skipped ${decision.steps.join(' ')}`;
    case 'steps-stopping':
      return `steps-stopping ${decision.steps.join(' ')}: ${decision.why}${decision.force ? ', at once' : ''}`;
    case 'frame-closed':
      return `frame-closed ${JSON.stringify(decision.frame)} ${decision.ok ? 'ok' : 'failed'}${decision.value === null ? '' : ` with ${JSON.stringify(decision.value)}`}`;
    case 'run-ending': {
      const { end, drainUntil, pause } = decision;
      const why =
        pause === undefined
          ? ''
          : ` by ${pause.budget}: ${pause.spent} + ${pause.reserved} + ${pause.needed} > ${pause.limit}`;
      return `run-ending ${end}${drainUntil === null ? '' : ` by ${drainUntil / 1000}s`}${why}`;
    }
    case 'run-ended':
      return `run-ended ${decision.end}${decision.result === null ? '' : ` with ${JSON.stringify(decision.result)}`}${
        decision.lasted === undefined ? '' : ` after ${decision.lasted / 1000}s`
      }${decision.cost === undefined ? '' : ` for ${JSON.stringify(decision.cost)}`}`;
    case 'run-resumed':
      return `run-resumed ${decision.reopened.join(' ')}${decision.withdrawn ? '(goes on)' : ''}${shownLimits(decision)}`.trimEnd();
    case 'run-started':
      return 'run-started';
    case 'warned':
      return `warned: ${decision.message}`;
    case 'items-read':
      return `items-read ${decision.step} ${JSON.stringify(decision.items)}`;
    case 'iterations-named':
      return `iterations-named ${decision.step} ${decision.names.join(' ')}`;
    case 'round-delayed':
      return `round-delayed ${decision.step} ${decision.round} until ${decision.until / 1000}s`;
    case 'step-printed':
      return `step-printed ${decision.step}: ${decision.text}`;
    case 'step-progressed':
      return `step-progressed ${decision.step} ${JSON.stringify(decision.progress)}`;
    case 'agent-session':
      return `agent-session ${decision.agent} ${decision.session}`;
    case 'step-completing':
      return `step-completing ${decision.step} ${JSON.stringify(decision.outputs)}`;
    case 'gate-asked':
      return `gate-asked ${decision.gate} for ${decision.step}${decision.anew ? ', anew' : ''}`;
    case 'gate-expired':
      return `gate-expired ${decision.gate} for ${decision.step}`;
    case 'report-refused':
      return `report-refused ${decision.step}: ${decision.reason}`;
    case 'wait-released':
      return `wait-released ${decision.step}`;
    case 'event-emitted':
      return `event-emitted ${decision.event.type}`;
    case 'event-received':
      return `event-received ${decision.step} ${decision.event}`;
    case 'agent-kept':
      return `agent-kept ${decision.agent.name}`;
    case 'agent-opened':
      return `agent-opened ${decision.agent.name}${decision.agent.session === null ? '' : ` in ${decision.agent.session}`}`;
    case 'agent-reviving':
      return `agent-reviving ${decision.agent}${decision.spawn.resumeSession === null ? '' : ` in ${shown(decision.spawn.resumeSession)}`}`;
    case 'agents-closing':
      return `agents-closing ${decision.agents.join(' ')}${decision.force ? ', at once' : ''}`;
    case 'agents-hastened':
      return `agents-hastened ${decision.agents.join(' ')}`;
    case 'agent-closed':
      return `agent-closed ${decision.agent} ${decision.how}`;
    case 'usage-counted':
      return `usage-counted ${decision.step} $${decision.usage.usd ?? '?'} ${decision.usage.tokens ?? '?'} tokens`;
    case 'usage-reserved': {
      const { step, attempt, usd, tokens, agent } = decision;
      return `usage-reserved ${step}#${attempt} $${usd}${tokens === 0 ? '' : ` ${tokens} tokens`} for ${agent}`;
    }
    case 'gate-decided':
      return `gate-decided ${decision.gate} ${decision.verdict.approved ? 'approved' : 'rejected'}`;
    case 'cleanup-started':
      return `cleanup-started $ ${shown(decision.effect.script)}`;
    case 'value-returned':
      return `value-returned ${JSON.stringify(decision.value)}`;
    case 'frames-dropped':
      return `frames-dropped ${decision.frames.join(' ')}`;
    case 'frame-failing':
      return `frame-failing ${JSON.stringify(decision.frame)}`;
    case 'engine-replaced':
      return decision.kind;
    case 'effect-ended':
      return `effect-ended ${decision.step} at ${decision.endedAt / 1000}s`;
    case 'step-grown':
    case 'step-retried':
    case 'round-due':
    case 'step-lost':
    case 'recovery-failed':
      return `${decision.kind} ${decision.step}`;
    case 'cleanup-stopping':
    case 'cleanup-finished':
      return decision.kind;
  }
}

function shownLimits({ limits }: Extract<Decision, { kind: 'run-resumed' }>): string {
  return limits === undefined ? '' : ` within ${limits.expansionDepthMax} levels and ${limits.stepsMax} steps`;
}

function shown(text: unknown): string {
  return typeof text === 'string' ? text : JSON.stringify(text);
}
