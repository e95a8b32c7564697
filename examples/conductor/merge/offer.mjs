// Offers the worktree of the run to main, and answers with the outcome, which selects the route.

import { spawnSync } from 'node:child_process';

const STATUSES = {
  merged: 'success',
  conflict: 'partial',
  check_failed: 'partial',
  stale: 'blocked',
  withdrawn: 'needs_human',
};

const offer = spawnSync('meow', ['merge', 'offer', '--check', 'sh check.sh', '--json'], { encoding: 'utf8' });
if (offer.stdout === '') {
  process.stderr.write(offer.stderr);
  process.exit(1);
}
const { outcome, check, output } = JSON.parse(offer.stdout);
const instructions = {
  conflict: `Your commits conflict with main in these files:\n${output}`,
  check_failed: `With main, your commits fail the check ${check}:\n${output}`,
};
const answer = {
  status: STATUSES[outcome],
  next_step: null,
  fix_instructions: instructions[outcome] ?? null,
  blockers: outcome === 'merged' ? [] : [`${outcome}: ${output}`],
  risk_flags: [],
};
console.log(JSON.stringify(answer));
