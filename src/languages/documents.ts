// Every kind of document whose keys are described by tables, by the name that `meow schema` knows it by.

import { ADAPTER } from './adapter/keys.ts';
import { CONDUCTOR } from './conductor/keys.ts';
import { CONFIG } from './config-keys.ts';
import type { Document } from './keys.ts';
import { MEOW } from './meow/keys.ts';
import { RAYMOND } from './raymond/keys.ts';
import { SIM } from './sim-keys.ts';
import { TEST_FILE } from './test-file/keys.ts';

export const DOCUMENTS: Readonly<Record<string, Document>> = {
  meow: MEOW,
  raymond: RAYMOND,
  conductor: CONDUCTOR,
  test: TEST_FILE,
  sim: SIM,
  adapter: ADAPTER,
  config: CONFIG,
};
