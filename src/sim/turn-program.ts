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
// A result also has "usd" and "tokens", the costs of the turn, or null, and if they are known "input", "cached" and "output". A crash prints no result; the exit code is 1
// unless the result is ok. SIGINT ends the turn with a result that is not ok and exit code 0, as some agents do;
// SIGTERM and SIGHUP end it without a result.

import { appendFileSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';

import { err, ok, type Result } from '../base/errors.ts';
import { writeJsonFile } from '../sys/files.ts';
import { machine } from './child.ts';
import { type HeadlessEnd, workHeadless } from './headless.ts';
import { readMemory, type SimScript } from './script.ts';

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

async function work(given: TurnArguments, script: SimScript, text: string, signal: AbortSignal): Promise<HeadlessEnd> {
  const { agent, step, answer } = given;
  const memoryFile = join(given.sessions, `${encodeURIComponent(agent)}.memory.json`);
  return workHeadless({
    world: machine,
    agent,
    step,
    script,
    text,
    answer,
    interrupt: signal,
    memory: readMemory(memoryFile),
    remember: (memory) => writeJsonFile(memoryFile, memory),
    say: (line) => print({ kind: 'text', text: line }),
    tool: (state, line) => print({ kind: 'tool', state, text: line }),
    goDeaf: () => {
      for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(name).on(name, () => undefined);
    },
  });
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
