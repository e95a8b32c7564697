// A toy face: a server on loopback. It prints its URL; `GET /RUN` shows the status of a run and its steps, again after each
// change until the run ends.

import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { follow } from '../../../src/app/follow.ts';
import { findProject } from '../../../src/app/project.ts';
import { resolveRun, storeOf } from '../../../src/app/runs.ts';
import { UsageError } from '../../../src/base/errors.ts';
import { statusView, type StatusView } from '../../../src/view/status.ts';

const store = storeOf(findProject());
const server = createServer((request, response) => void show((request.url ?? '/').slice(1), response));
server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

async function show(wanted: string, response: ServerResponse): Promise<void> {
  try {
    await follow(
      store,
      await resolveRun(store, wanted),
      ({ state }) => {
        response.write(pageOf(statusView(state)));
        return state.phase !== 'ended';
      },
      () => response.destroyed,
    );
    response.end();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    response.statusCode = 404;
    response.end(`${error.message}\n`);
  }
}

function pageOf({ id, language, status, steps }: StatusView): string {
  const rows = Object.entries(steps).map(([step, view]) => `  ${step} ${view.status}\n`);
  return `${id} (${language}) ${status}\n${rows.join('')}`;
}
