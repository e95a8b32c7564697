// Everything that the sender sends.

import { notifyTask } from './notify-task.ts';
import type { TaskMaker } from './sender.ts';
import { traceTask } from './trace-task.ts';

export const SEND_TASKS: readonly TaskMaker[] = [notifyTask, traceTask];
