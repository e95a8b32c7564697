// `meow sim-turn`: one headless turn of a simulated agent. The prompt is on stdin; the script decides what the agent
// does, as for the long-lived one (agent.ts). Without a script it reports the requested outputs, or else gives the
// answer that it was started with.
//
//   meow sim-turn --session ID              starts a session; it must not exist
//   meow sim-turn --resume ID               continues a session
//   meow sim-turn --fork ID --session NEW   starts a session with the history of another
//     [--model M] [--effort E]              only recorded
//
//   MEOW_AGENT, MEOW_STEP   matched by rules, used for reports
//   MEOW_SIM_SCRIPT         the script; default: `sim.toml` in the run's folder, if it exists
//   MEOW_SIM_SESSIONS       folder of sessions; default: `sim-sessions` in the run's folder. Each session is a file
//                           `ID.jsonl` with a line `{"prompt": …}` for each prompt and `{"answer": …}` for each answer
//   MEOW_SIM_ANSWER         its answer if no rule matches and no report is requested; default: a short text
//   MEOW_INBOX              a path in the run's folder; if unset, the working directory counts as the run's folder
//
// It prints events on stdout, one JSON object a line:
//
//   {"kind":"begun","session":ID}
//   {"kind":"text","text":…}                   the agent says something
//   {"kind":"tool","state":"begun","text":…}   it calls a program; then "ended" with the program's output
//   {"kind":"result","ok":true,"text":…}       its answer: everything it said
//   {"kind":"result","ok":false,"text":…}      or the error, with "limit":{"until":…} for a usage limit: its end in
//                                              milliseconds since 1970, or null
//
// A result also has "usd" and "tokens", the costs of the turn, or null. A crash prints no result; the exit code is 1
// unless the result is ok. SIGINT ends the turn with a result that is not ok and exit code 0, as some agents do;
// SIGTERM and SIGHUP end it without a result.

import { appendFileSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';

import { err, ok, type Result } from '../base/errors.ts';
import type { Expectation } from '../ir/output.ts';
import type { PromptMessage } from '../ir/prompt-text.ts';
import { writeJsonFile } from '../sys/files.ts';
import { readMemory, ruleFor, withPrompt, withRule } from './rules.ts';
import type { SimScript } from './script.ts';
import { Turn } from './turn.ts';

export interface TurnArguments {
  readonly resumes: boolean;
  /** Session of this turn. */
  readonly session: string;
  /** For a fork: the parent session. */
  readonly parent: string | null;
  readonly model: string | null;
  readonly effort: string | null;
  readonly agent: string;
  readonly step: string;
  /** Path of the script; may be absent. */
  readonly script: string;
  /** Folder of the sessions. */
  readonly sessions: string;
  /** If no rule matches and no report is requested; null: a short text. */
  readonly answer: string | null;
}

/** The error is a sentence. */
export function parseTurnArguments(args: readonly string[], env: NodeJS.ProcessEnv): Result<TurnArguments, string> {
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
  const inbox = env['MEOW_INBOX'];
  const runFolder = inbox === undefined ? process.cwd() : dirname(inbox);
  return ok({
    resumes: resume !== undefined,
    session: id,
    parent: fork ?? null,
    model: flags.get('--model') ?? null,
    effort: flags.get('--effort') ?? null,
    agent: env['MEOW_AGENT'] ?? 'sim',
    step: env['MEOW_STEP'] ?? '',
    script: env['MEOW_SIM_SCRIPT'] ?? join(runFolder, 'sim.toml'),
    sessions: env['MEOW_SIM_SESSIONS'] ?? join(runFolder, 'sim-sessions'),
    answer: env['MEOW_SIM_ANSWER'] ?? null,
  });
}

const FLAGS = new Set(['--session', '--resume', '--fork', '--model', '--effort']);

/** Resolves to the exit code. */
export async function takeTurn(given: TurnArguments, script: SimScript, prompt: string): Promise<number> {
  const { agent, step, model, effort, session } = given;
  const file = join(given.sessions, `${session}.jsonl`);
  const refusal = openSession(given, file);
  if (refusal !== null) {
    process.stderr.write(`${refusal}\n`);
    return 1;
  }
  record(file, { prompt, agent, step, model, effort });
  print({ kind: 'begun', session });
  const interrupt = new AbortController();
  process.on('SIGINT', () => interrupt.abort());
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // Programs it started are killed with it.
      interrupt.abort();
      process.exit(128 + constants.signals[signal]);
    });
  }
  const end = await work(given, script, prompt, interrupt.signal);
  record(file, { answer: end.text });
  print({ kind: 'result', ...end });
  return end.ok || interrupt.signal.aborted ? 0 : 1;
}

interface WorkResult {
  readonly ok: boolean;
  readonly text: string;
  readonly limit?: { readonly until: number | null };
  readonly usd: number | null;
  readonly tokens: number | null;
}

async function work(given: TurnArguments, script: SimScript, text: string, signal: AbortSignal): Promise<WorkResult> {
  const { agent, step, sessions } = given;
  const memoryFile = join(sessions, `${encodeURIComponent(agent)}.memory.json`);
  const { prompt, expects, reports } = askedOutputs(text);
  const memory = withPrompt(readMemory(memoryFile));
  const found = ruleFor(script.rules, { agent, step, prompt }, memory, 0);
  writeJsonFile(memoryFile, found === null ? memory : withRule(memory, found.number));

  const said: string[] = [];
  let problem: Pick<WorkResult, 'text' | 'limit'> | null = null;
  let cost: Pick<WorkResult, 'usd' | 'tokens'> = { usd: 0, tokens: 0 };
  const mode = reports ? 'autonomous' : 'fire-forget';
  const message: PromptMessage = { kind: 'prompt', id: step, step, prompt, text, mode, expects };
  const turn = new Turn({
    agent,
    message,
    number: memory.prompts,
    interrupt: signal,
    say: (line) => {
      said.push(line);
      print({ kind: 'text', text: line });
    },
    toolBegun: (call) => print({ kind: 'tool', state: 'begun', text: call }),
    toolEnded: (lines) => print({ kind: 'tool', state: 'ended', text: lines.join('\n') }),
    spend: (usd, tokens) => {
      cost = { usd, tokens };
    },
    fail: (why) => {
      problem = { text: why };
    },
    goDeaf: () => {
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
        process.removeAllListeners(signal).on(signal, () => undefined);
    },
    tellLimit: (why, until) => {
      problem = { text: `usage limit reached, ${why}`, limit: { until } };
    },
  });
  const end = found === null ? await turn.oblige() : await turn.follow(found.rule.actions);
  if (signal.aborted) return { ok: false, text: 'interrupted', ...cost };
  if (problem !== null) return { ok: false, ...(problem as Pick<WorkResult, 'text' | 'limit'>), ...cost };
  if (found === null) said.push(end === 'reported' ? 'Reported.' : (given.answer ?? unscripted(prompt)));
  return { ok: true, text: said.join('\n'), ...cost };
}

/** Null if the session can be used, otherwise the reason. */
function openSession({ resumes, session, parent, sessions }: TurnArguments, file: string): string | null {
  mkdirSync(sessions, { recursive: true, mode: 0o700 });
  if (resumes) return existsSync(file) ? null : `there is no session ${session}`;
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

function record(file: string, entry: object): void {
  appendFileSync(file, `${JSON.stringify(entry)}\n`);
}

function print(event: object): void {
  process.stdout.write(`${JSON.stringify(event)}\n`);
}

/** A planner's verdict if the prompt asks for one. */
function unscripted(prompt: string): string {
  if (/\nAnswer with exactly one JSON object .*\n\n {2}"status" +one of "success"/.test(prompt)) {
    return '{"status":"success","next_step":null,"fix_instructions":null,"blockers":[],"risk_flags":[]}';
  }
  const [first = ''] = prompt.trim().split('\n');
  return `An answer to: ${first.slice(0, 80)}`;
}

// Parses the requests in a prompt, as an agent would read them: the inverse of `promptText`.

export interface AskedOutputs {
  /** The workflow's text without the instructions about outputs and reports. */
  readonly prompt: string;
  /** A report is requested. */
  readonly reports: boolean;
  readonly expects: readonly Expectation[];
}

export function askedOutputs(text: string): AskedOutputs {
  const asked = REQUESTS.exec(text);
  if (asked === null) return { prompt: text, reports: false, expects: [] };
  const expects = (asked[1] ?? '').split('\n').flatMap((line) => expectationIn(line) ?? []);
  return { prompt: text.slice(0, asked.index), reports: true, expects };
}

const REQUESTS = /(?:^|\n)(?:\nExpected outputs:\n((?: {2}.*\n)+))?\n?Report when .*:\n {2}meow done(?: .*)?\s*$/;

function expectationIn(line: string): Expectation | null {
  const fields = /^ {2}(.+?) \((string|number|boolean|json|file_path), (required|optional)\)(?:: (.*))?$/.exec(line);
  if (fields === null) return null;
  const [, name = '', type, need, description] = fields;
  return { name, type: type as Expectation['type'], required: need === 'required', description: description ?? null };
}
