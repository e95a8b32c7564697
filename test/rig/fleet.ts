// A machine of a fleet, for tests.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import type { Rig } from './rig.ts';

/** Every `meow` of this rig finds the fleet by its file. */
export function nameFleet(rig: Rig, url: string): void {
  const path = join(rig.home, '.meow/fleet.url');
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${url}\n`, { mode: 0o600 });
}
