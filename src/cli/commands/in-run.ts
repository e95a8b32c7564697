// Commands that steps and agents call inside a run.

import {
  awaitEvent as requestEvent,
  currentPrompt,
  emitEvent,
  EXPIRED_EXIT_CODE,
  messageOf,
  plainText,
  reportDone,
  requestApproval,
  sessionIdOf,
  stepStatus as requestStatus,
} from '../../app/agent-requests.ts';
import { requireRunContext, runContext } from '../../app/run-context.ts';
import { replyToStop } from '../../app/stop-hook-limit.ts';
import { UsageError } from '../../base/errors.ts';
import { isJsonMap, type JsonMap, readJsonText } from '../../base/json.ts';
import { didYouMean } from '../../base/names.ts';
import { type Given, readPairs } from '../flags.ts';
import { EXIT, print, printJson, printLine, warn } from '../output.ts';

export async function done(given: Given): Promise<number> {
  const context = requireRunContext('done');
  const objects = ['json', 'output-json'].map((flag) => readJson(flag, given.last(flag)));
  const outputs: JsonMap = Object.assign({}, ...objects, readPairs('output', given.all('output')));
  const onNoEngine = (): void =>
    warn('meow: the run has no engine; waiting for one. The report stays queued even if you stop this command');
  const answer = await reportDone(context, { outputs, notes: given.last('notes') }, { onNoEngine });
  if (answer.kind !== 'ack') {
    warn(`Error: ${messageOf(answer)}`);
    return EXIT.failed;
  }
  for (const warning of answer.warnings ?? []) warn(`meow: ${warning}`);
  printLine('Complete');
  return EXIT.done;
}

function readJson(flag: string, text: string | null): JsonMap {
  if (text === null) return {};
  const refuse = (what: string): UsageError => new UsageError(`--${flag} ${what}`, `write --${flag} '{"NAME": VALUE}'`);
  const read = readJsonText(text);
  if (!read.ok) throw refuse(`is not valid JSON: ${read.error}`);
  if (!isJsonMap(read.value)) throw refuse('must be an object');
  return read.value;
}

// `meow prime`: prints the prompt that the agent should be working on. A hook calls it whenever an agent stops, so it
// prints nothing and succeeds if there is no prompt: outside of a run, for an idle agent, or without an engine.

const FORMATS = ['prompt', 'json', 'hook'];

export async function prime(given: Given): Promise<number> {
  const format = given.last('format') ?? 'prompt';
  if (!FORMATS.includes(format)) {
    throw new UsageError(`unknown format ${JSON.stringify(format)}`, 'write --format prompt, json or hook');
  }
  const context = runContext();
  if (context === null || context.agent === null) return EXIT.done;
  const { agent } = context;
  const answer = await currentPrompt(context, agent);
  if (answer?.kind !== 'prompt') return EXIT.done;
  const { content: prompt, step = null } = answer;
  if (format === 'json') printJson({ agent, step, prompt });
  else if (prompt === '') return EXIT.done;
  else if (format === 'hook') {
    const reason = await replyToStop(context, { agent, step: step ?? '', prompt });
    if (reason !== null) printJson({ decision: 'block', reason });
  } else print(prompt.endsWith('\n') ? prompt : `${prompt}\n`);
  return EXIT.done;
}

/** `meow session-id`: prints the id of an agent's session, for a workflow that continues it later. */
export async function sessionId(given: Given): Promise<number> {
  const context = requireRunContext('session-id');
  const agent = given.last('agent') ?? context.agent;
  if (agent === null) throw new UsageError('which agent?', 'meow session-id --agent NAME');
  const answer = await sessionIdOf(context, agent);
  if (answer.kind === 'session-id') printLine(answer.session_id);
  else warn(`meow: ${messageOf(answer)}`);
  return answer.kind === 'session-id' ? EXIT.done : EXIT.failed;
}

/**
 * `meow event`, if bin/event.sh could not send the event without starting Node. It does not wait for an answer. An
 * event that nobody can receive any more is not a failure of the hook that sent it.
 */
export async function event(given: Given): Promise<number> {
  const [type = ''] = given.arguments;
  const data = readPairs('data', given.all('data'));
  if (type === '') throw new UsageError('an event needs a type', 'meow event TYPE [--data NAME=VALUE]…');
  const context = runContext();
  if (context === null) return EXIT.done;
  const sent = await emitEvent(context, type, data);
  if (!sent.ok) {
    warn(`meow: ${sent.error}`);
    return EXIT.failed;
  }
  if (!sent.value) warn(`meow: the event ${type} was not delivered: the run has ended`);
  return EXIT.done;
}

/** `meow await-event`: waits for an event of the run, and prints its data. */
export async function awaitEvent(given: Given): Promise<number> {
  const [type = ''] = given.arguments;
  const wait = { type, filter: readPairs('filter', given.all('filter')), timeout: given.last('timeout') };
  const answer = await requestEvent(requireRunContext('await-event'), wait);
  switch (answer.kind) {
    case 'event-received':
    case 'event-match':
      if (given.has('json')) printJson({ type: answer.event_type, agent: answer.agent, data: answer.data });
      else for (const [name, value] of Object.entries(answer.data)) printLine(`${name}=${plainText(value)}`);
      return EXIT.done;
    case 'timeout':
    case 'released':
      warn(`meow: ${answer.message}`);
      return EXIT.failed;
    default:
      warn(`meow: ${messageOf(answer)}`);
      return EXIT.usage;
  }
}

// `meow step-status`: prints the status of a step of this run.

const STATUSES = ['pending', 'running', 'completing', 'done', 'failed', 'skipped'];

export async function stepStatus(given: Given): Promise<number> {
  const [step = ''] = given.arguments;
  const is = checkStatus(given.last('is'));
  const isNot = checkStatus(given.last('is-not'));
  if (is !== null && isNot !== null) throw new UsageError('--is and --is-not exclude each other');
  const status = await requestStatus(requireRunContext('step-status'), step);
  printLine(status);
  return (is !== null && status !== is) || status === isNot ? EXIT.failed : EXIT.done;
}

function checkStatus(wanted: string | null): string | null {
  if (wanted === null || STATUSES.includes(wanted)) return wanted;
  const known = `${STATUSES.slice(0, -1).join(', ')} or ${STATUSES.at(-1) ?? ''}`;
  throw new UsageError(`unknown status ${JSON.stringify(wanted)}`, `${didYouMean(wanted, STATUSES)}a step is ${known}`);
}

/** `meow await-approval`: opens a gate for the step that it is called in, and waits until it is decided. */
export async function awaitApproval(given: Given): Promise<number> {
  const [gate = ''] = given.arguments;
  const [prompt, timeout] = [given.last('prompt'), given.last('timeout')];
  const question = { gate, prompt, timeout, approvers: given.all('approver') };
  const answer = await requestApproval(requireRunContext('await-approval'), question);
  switch (answer.kind) {
    case 'gate-decided': {
      const text = answer.answer ?? answer.notes ?? '';
      if (text !== '') printLine(text);
      return answer.approved ? EXIT.done : EXIT.failed;
    }
    case 'timeout':
      warn(`meow: ${answer.message}`);
      return EXPIRED_EXIT_CODE;
    default:
      warn(`meow: ${messageOf(answer)}`);
      return EXIT.usage;
  }
}
