// How many notifications a channel has refused, or not answered, and will get again.

import { join } from 'node:path';

import { announcements, attemptsFile } from './announcements.ts';
import { Deliveries } from './deliveries.ts';
import { NOTIFIED_FILE } from './notify-task.ts';

export function pendingNotifications(): number {
  const files = announcements().map((each) =>
    'run' in each.about ? join(each.about.run, NOTIFIED_FILE) : attemptsFile(each),
  );
  return files.reduce((sum, file) => sum + new Deliveries(file).pending, 0);
}
