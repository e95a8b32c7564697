// The process of an agent that two engines start at the same time: shell/1 and host/1.

import { spawn } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { present } from '../../src/base/errors.ts';
import { AgentProcess } from '../../src/drivers/agent/agent-process.ts';
import { findShell } from '../../src/drivers/recording-shell.ts';
import { makeFolder } from '../../src/sys/files.ts';
import { bootId, MARKER } from '../../src/sys/process.ts';
import { onRig } from './terminal-rig.ts';

test('a start whose other shell has created its record, and not written it yet, has not failed', () =>
  onRig(async (rig) => {
    const start = rig.makeStart('worker');
    const { path } = start.folder;
    const status = join(path, 'status');
    makeFolder(path);
    closeSync(openSync(status, 'w'));
    const environment = { ...rig.environment, [MARKER]: start.marker };
    const other = spawn('sleep', ['1000'], { env: environment, detached: true, stdio: 'ignore' });
    const agent = new AgentProcess(start, () => undefined);
    const shell = present(findShell('sh', rig.environment.PATH), 'sh');
    agent.begin({ shell, command: ['true'], environment });
    const refused = new Promise((resolve) => setTimeout(resolve, 2_000, 'alive'));
    expect(await Promise.race([agent.ended, refused])).toBe('alive');
    writeFileSync(status, `${other.pid} - ${bootId()}\nexit 3\n`);
    other.kill('SIGKILL');
    expect(await agent.ended).toMatchObject({ status: 3, refusal: null });
  }));

test('a start whose record cannot be written has failed', () =>
  onRig(async (rig) => {
    const start = rig.makeStart('worker');
    makeFolder(start.folder.path);
    closeSync(openSync(join(start.folder.path, 'status'), 'w'));
    const agent = new AgentProcess(start, () => undefined);
    const shell = present(findShell('sh', rig.environment.PATH), 'sh');
    agent.begin({ shell, command: ['true'], environment: { ...rig.environment, [MARKER]: start.marker } });
    expect(await agent.ended).toMatchObject({ refusal: expect.stringContaining('could not be written') as string });
  }));
