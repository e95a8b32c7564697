// Judges only by the engine's evidence: reads it from stdin, and prints one JSON object.

import { readFileSync } from 'node:fs';

const { validation, pending_goldens: goldens, policy_events: events } = JSON.parse(readFileSync(0, 'utf8'));
const failed = validation.flatMap(({ validators }) => validators).filter(({ outcome }) => outcome !== 'completed');

function status() {
  if (events.some(({ is_rolled_back: isOver }) => !isOver)) return 'unsafe';
  if (goldens.length > 0) return 'needs_human';
  return failed.length > 0 ? 'blocked' : 'success';
}

const answer = {
  status: status(),
  next_step: null,
  fix_instructions: null,
  blockers: failed.map(({ id, message }) => `${id}: ${message}`),
  risk_flags: goldens.map((path) => `${path} would change`),
};
console.log(JSON.stringify(answer));
