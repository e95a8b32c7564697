// Every store against the one contract.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { fileStore } from '../../src/stores/files.ts';
import { memoryStore } from '../fixtures/memory-store.ts';
import { storeContract } from './store.ts';

storeContract('memory', async () => ({ store: memoryStore(), dispose: async () => {} }));

storeContract('files', async () => {
  const project = await mkdtemp(join(tmpdir(), 'meow-store-'));
  return {
    store: fileStore({ folder: join(project, '.meow', 'workflows') }),
    dispose: () => rm(project, { recursive: true }),
  };
});
