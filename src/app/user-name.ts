// The name of the user, as decisions record who made them.

import { userInfo } from 'node:os';
import { tolerate } from '../sys/errors.ts';

export function userName(): string {
  // The system has no name for this user.
  return tolerate(['ENOENT'], process.env['USER'] ?? 'somebody', () => userInfo().username);
}
