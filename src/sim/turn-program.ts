// `meow sim-turn`: one turn of a simulated agent that does not stay. The prompt is on stdin; what the agent does about
// it is what its script says, as for the one that stays (agent.ts). Without a script it reports what it is asked for,
// else it answers a short text.
//
//   meow sim-turn --session ID              begins a session; there must be none of that id
//   meow sim-turn --resume ID               goes on with one
//   meow sim-turn --fork ID --session NEW   begins one with all that another has had
//         [--model M] [--effort E]          are written down, and nothing else
//
//   MEOW_AGENT, MEOW_STEP   whom rules are for, and reports
//   MEOW_SIM_SCRIPT         the script; else `sim.toml` in the run's folder, if it is there
//   MEOW_SIM_SESSIONS       a folder for sessions; else `sim-sessions` in the run's folder. Each is a file `ID.jsonl`: a
//                           line `{"prompt": …}` for each prompt and one `{"answer": …}` for each answer
//   MEOW_INBOX              is in the run's folder; without it, the folder that it is started in stands for that
//
// It says on stdout what happens, a JSON object on each line:
//
//   {"kind":"begun","session":ID}
//   {"kind":"text","text":…}                       the agent says something
//   {"kind":"tool","state":"begun","text":…}       it calls a program; then "ended", with what that said
//   {"kind":"result","ok":true,"text":…}           its answer: all that it has said
//   {"kind":"result","ok":false,"text":…}          or what went wrong, with "limit":{"until":…} where that is a usage
//                                                  limit: when it ends, in milliseconds since 1970, or null
//
// A result has also "usd" and "tokens": what the turn has cost, null where that is not told. There is none where the
// agent crashes, and its exit status is 1 where the result is not ok. An interrupt (SIGINT) ends the turn with a result
// that is not ok and the status 0, as some agents do; SIGTERM and SIGHUP end it without.

import { appendFileSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { err, ok } from '../base/result.ts';
import type { Result } from '../base/result.ts';
import type { PromptMessage } from '../ir/prompt-text.ts';
import { askedOutputs, asksForStatus } from './asked-outputs.ts';
import { readMemory, writeMemory } from './memory-file.ts';
import { ruleFor, withPrompt, withRule } from './rules.ts';
import type { SimScript } from './script.ts';
import { Turn } from './turn.ts';

export interface TurnWish {
  readonly kind: 'fresh' | 'resume' | 'fork';
  /** The one that the turn is in. */
  readonly session: string;
  /** Of a fork: the one that it begins with. */
  readonly parent: string | null;
  readonly model: string | null;
  readonly effort: string | null;
  readonly agent: string;
  readonly step: string;
  /** The path of the script, which may be absent. */
  readonly script: string;
  /** The folder of the sessions. */
  readonly sessions: string;
}

/** An error is a sentence. */
export function turnWish(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Result<TurnWish, string> {
  const flags = new Map<string, string>();
  for (let at = 0; at < args.length; at += 2) {
    const [name = '', value] = [args[at], args[at + 1]];
    if (!FLAGS.has(name) || value === undefined) return err(`there is no flag ${name}, or it has no value`);
    flags.set(name, value);
  }
  const [session, resume, fork] = [flags.get('--session'), flags.get('--resume'), flags.get('--fork')];
  const id = resume ?? session;
  if (id === undefined || (resume !== undefined && (session ?? fork) !== undefined)) {
    return err('it takes --session ID, or --resume ID, or --fork ID --session NEW');
  }
  const odd = [id, fork ?? id].find((each) => !/^[\w.-]{1,200}$/.test(each));
  if (odd !== undefined) return err(`${JSON.stringify(odd)} can be no session`);
  const inbox = environment['MEOW_INBOX'];
  const runFolder = inbox === undefined ? process.cwd() : dirname(inbox);
  return ok({
    kind: resume !== undefined ? 'resume' : fork !== undefined ? 'fork' : 'fresh',
    session: id,
    parent: fork ?? null,
    model: flags.get('--model') ?? null,
    effort: flags.get('--effort') ?? null,
    agent: environment['MEOW_AGENT'] ?? 'sim',
    step: environment['MEOW_STEP'] ?? '',
    script: environment['MEOW_SIM_SCRIPT'] ?? join(runFolder, 'sim.toml'),
    sessions: environment['MEOW_SIM_SESSIONS'] ?? join(runFolder, 'sim-sessions'),
  });
}

const FLAGS = new Set(['--session', '--resume', '--fork', '--model', '--effort']);

/** Resolves to the exit status. */
export async function takeTurn(wish: TurnWish, script: SimScript, prompt: string): Promise<number> {
  const file = sessionFile(wish, wish.session);
  const refusal = openSession(wish, file);
  if (refusal !== null) {
    process.stderr.write(`${refusal}\n`);
    return 1;
  }
  const { agent, step, model, effort } = wish;
  keep(file, { prompt, agent, step, model, effort });
  tell({ kind: 'begun', session: wish.session });
  const interrupt = new AbortController();
  listen(interrupt);
  const end = await work(wish, script, prompt, interrupt.signal);
  keep(file, { answer: end.text });
  tell({ kind: 'result', ...end });
  return end.ok || interrupt.signal.aborted ? 0 : 1;
}

interface WorkResult {
  readonly ok: boolean;
  readonly text: string;
  readonly limit?: { readonly until: number | null };
  readonly usd: number | null;
  readonly tokens: number | null;
}

async function work(wish: TurnWish, script: SimScript, text: string, interrupt: AbortSignal): Promise<WorkResult> {
  const { agent, step, sessions } = wish;
  const memoryFile = join(sessions, `${encodeURIComponent(agent)}.memory.json`);
  const asked = askedOutputs(text);
  const memory = withPrompt(readMemory(memoryFile));
  const found = ruleFor(script.rules, { agent, step, prompt: asked.prompt }, memory, 0);
  writeMemory(memoryFile, found === null ? memory : withRule(memory, found.number));

  const said: string[] = [];
  let problem: Pick<WorkResult, 'text' | 'limit'> | null = null;
  let cost: Pick<WorkResult, 'usd' | 'tokens'> = { usd: 0, tokens: 0 };
  const message: PromptMessage = {
    kind: 'prompt',
    id: step,
    step,
    prompt: asked.prompt,
    text,
    mode: asked.reports ? 'autonomous' : 'fire-forget',
    expects: asked.expects,
  };
  const turn = new Turn({
    agent,
    message,
    number: memory.prompts,
    interrupt,
    say: (line) => {
      said.push(line);
      tell({ kind: 'text', text: line });
    },
    toolBegun: (call) => tell({ kind: 'tool', state: 'begun', text: call }),
    toolEnded: (lines) => tell({ kind: 'tool', state: 'ended', text: lines.join('\n') }),
    spend: (usd, tokens) => {
      cost = { usd, tokens };
    },
    fail: (why) => {
      problem = { text: why };
    },
    goDeaf: () => {
      for (const signal of SIGNALS) process.removeAllListeners(signal).on(signal, () => undefined);
    },
    tellLimit: (why, until) => {
      problem = { text: `usage limit reached, ${why}`, limit: { until } };
    },
  });
  const end = found === null ? await turn.oblige() : await turn.follow(found.rule.actions);
  if (interrupt.aborted) return { ok: false, text: 'interrupted', ...cost };
  if (problem !== null) return { ok: false, ...(problem as Pick<WorkResult, 'text' | 'limit'>), ...cost };
  if (found === null) said.push(end === 'reported' ? 'Reported.' : unscripted(asked.prompt));
  return { ok: true, text: said.join('\n'), ...cost };
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

function listen(interrupt: AbortController): void {
  process.on('SIGINT', () => interrupt.abort());
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // What it has started is ended with it.
      interrupt.abort();
      process.exit(128 + constants.signals[signal]);
    });
  }
}

/** Null where the session can be used, else why not. */
function openSession({ kind, session, parent, sessions }: TurnWish, file: string): string | null {
  mkdirSync(sessions, { recursive: true, mode: 0o700 });
  if (kind === 'resume') return existsSync(file) ? null : `there is no session ${session}`;
  if (existsSync(file)) return `the session ${session} is in use already`;
  if (parent === null) {
    writeFileSync(file, '', { mode: 0o600 });
    return null;
  }
  const from = join(sessions, `${parent}.jsonl`);
  if (!existsSync(from)) return `there is no session ${parent}`;
  copyFileSync(from, file);
  return null;
}

function sessionFile({ sessions }: TurnWish, id: string): string {
  return join(sessions, `${id}.jsonl`);
}

function keep(file: string, entry: object): void {
  appendFileSync(file, `${JSON.stringify(entry)}\n`);
}

function tell(event: object): void {
  process.stdout.write(`${JSON.stringify(event)}\n`);
}

const LINE_MAX = 80;

function unscripted(prompt: string): string {
  return asksForStatus(prompt) ? CONTENT : `An answer to: ${firstLine(prompt)}`;
}

/** Of one who evaluates. */
const CONTENT = '{"status":"success","next_step":null,"fix_instructions":null,"blockers":[],"risk_flags":[]}';

function firstLine(text: string): string {
  return (text.trim().split('\n')[0] ?? '').slice(0, LINE_MAX);
}
