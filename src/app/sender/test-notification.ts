// `meow notify test`: one message to every channel, now.

import { dirname } from 'node:path';

import { UsageError } from '../../base/errors.ts';
import type { Project } from '../project.ts';
import { readSettings } from '../sources.ts';
import { type Channel, channelsOf, deliver } from './channels.ts';
import { environmentOfSender } from './dispatcher.ts';
import { testMessage } from './message.ts';

export interface TestedChannel {
  readonly channel: Channel;
  readonly accepted: boolean;
  readonly error: string | null;
}

/** Throws a UsageError if no channel is configured. */
export async function testNotifications(project: Project): Promise<readonly TestedChannel[]> {
  const config = readSettings(project).config.notify;
  const channels = channelsOf(config);
  if (channels.length === 0) {
    throw new UsageError(
      'no channel for notifications is configured',
      'add one to .meow/config.toml, for example: [notify] and below it desktop = true',
    );
  }
  const cwd = dirname(project.meow);
  const message = testMessage(cwd, Date.now());
  const place = { config, cwd, environment: environmentOfSender() };
  return Promise.all(
    channels.map(async (channel) => {
      const result = await deliver(channel, message, place);
      return { channel, accepted: result.ok, error: result.ok ? null : result.error };
    }),
  );
}
