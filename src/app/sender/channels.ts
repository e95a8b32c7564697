// The channels of notifications: a webhook, a command, the desktop.

import { spawn } from 'node:child_process';

import { err, ok, type Result } from '../../base/errors.ts';
import type { NotifyConfig } from '../../languages/notify-config.ts';
import { jsonOf, type Message, plainText, titleOf, webhookRequest } from './message.ts';
import { post } from './post.ts';

export const CHANNELS = ['webhook', 'command', 'desktop'] as const;
export type Channel = (typeof CHANNELS)[number];

export interface ChannelPlace {
  readonly config: NotifyConfig;
  readonly environment: Readonly<Record<string, string>>;
  /** Where commands run. Absolute. */
  readonly cwd: string;
}

export function channelsOf({ webhook, command, desktop }: NotifyConfig): readonly Channel[] {
  const isOn = { webhook: webhook !== null, command: command !== null, desktop };
  return CHANNELS.filter((channel) => isOn[channel]);
}

const ANSWER_MAX_MS = 10_000;
const COMMAND_MAX_MS = 30_000;

/** An error is a part of a sentence. Never rejects. */
export function deliver(channel: Channel, message: Message, place: ChannelPlace): Promise<Result<void, string>> {
  switch (channel) {
    case 'webhook':
      return deliverToWebhook(message, place);
    case 'command': {
      const { kind, run, step, gate, text } = message;
      const own = {
        MEOW_NOTICE: kind,
        MEOW_WORKFLOW: run ?? '',
        MEOW_STEP: step ?? '',
        MEOW_GATE: gate ?? '',
        MEOW_TEXT: text.slice(0, VARIABLE_MAX),
      };
      const environment = { ...place.environment, ...own };
      return runProgram(['sh', '-c', place.config.command ?? ''], `${jsonOf(message)}\n`, { ...place, environment });
    }
    case 'desktop':
      return runProgram(desktopCommand(message), '', place);
  }
}

/** Fits into any environment. */
const VARIABLE_MAX = 32_000;

async function deliverToWebhook(
  message: Message,
  { config, environment }: ChannelPlace,
): Promise<Result<void, string>> {
  const { webhook } = config;
  if (webhook === null) return err('no webhook is configured');
  const url = valueOf(webhook.url, environment);
  if (!url.ok) return url;
  const secret = webhook.secret === null ? ok(null) : valueOf(webhook.secret, environment);
  if (!secret.ok) return secret;
  const request = webhookRequest(message, webhook.format, secret.value);
  return post({ ...request, url: url.value }, ANSWER_MAX_MS);
}

/** `$NAME` stands for an environment variable. An error is a part of a sentence. */
export function valueOf(written: string, environment: Readonly<Record<string, string>>): Result<string, string> {
  if (!written.startsWith('$')) return ok(written);
  const value = environment[written.slice(1)] ?? '';
  return value === '' ? err(`${written} is not set`) : ok(value);
}

function desktopCommand(message: Message): readonly string[] {
  const [title, text] = [titleOf(message), plainText(message)];
  if (process.platform !== 'darwin') return ['notify-send', '--app-name=meow', '--', title, text];
  const quoted = (each: string): string => `"${each.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
  return ['osascript', '-e', `display notification ${quoted(text)} with title ${quoted(title)}`];
}

function runProgram(
  [program = '', ...args]: readonly string[],
  input: string,
  { cwd, environment }: Pick<ChannelPlace, 'cwd' | 'environment'>,
): Promise<Result<void, string>> {
  return new Promise((resolve) => {
    // A group of its own, so that all of it can be killed.
    const child = spawn(program, args, {
      cwd,
      env: environment,
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    const deadline = setTimeout(() => {
      killGroup(child.pid);
      resolve(err(`it ran longer than ${COMMAND_MAX_MS / 1_000} s and was killed`));
    }, COMMAND_MAX_MS);
    const end = (result: Result<void, string>): void => {
      clearTimeout(deadline);
      resolve(result);
    };
    child.once('error', (error) => end(err(error.message)));
    child.once('exit', (code, signal) => {
      end(code === 0 ? ok(undefined) : err(signal === null ? `exit code ${code}` : `killed by ${signal}`));
    });
    // It need not read its input.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // It has just ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
