// `npm run test:agents`: runs the tests in test/agents/, which need real agents in exactly these versions. They are
// installed from the registry into a cache folder and stay there: MEOW_AGENTS_CACHE, or meow-agents in the user's
// cache. If that fails, one line says so and the tests that need them are skipped. Arguments are passed to vitest: `npm
// run test:agents -- -t resume`.

import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { build, conclude, runTests } from './run-tests.mjs';

/** Package → its program and version. */
const AGENTS = {
  '@anthropic-ai/claude-code': { program: 'claude', version: '2.1.325' },
  '@openai/codex': { program: 'codex', version: '0.166.0' },
};

/** A download of several hundred megabytes. */
const INSTALL_MAX_MS = 600_000;

const cache = resolve(
  process.env.MEOW_AGENTS_CACHE || join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'meow-agents'),
);

if (build()) {
  const problem = install();
  if (problem !== null)
    process.stdout.write(`the agents cannot be installed, so their tests are skipped: ${problem}\n`);
  const { MEOW_AGENTS_CACHE: _, ...environment } = process.env;
  if (problem === null) environment.MEOW_AGENTS_CACHE = cache;
  conclude(runTests(['--config', 'test/agents/vitest.config.ts', ...process.argv.slice(2)], environment));
} else {
  conclude({ passed: 0, failed: 1, skipped: 0 });
}

/** Null if all are installed, otherwise the problem. */
function install() {
  const missing = Object.entries(AGENTS).filter(([, agent]) => !isInstalled(agent));
  if (missing.length === 0) return null;
  const packages = missing.map(([name, { version }]) => `${name}@${version}`);
  process.stdout.write(`installing ${packages.join(' and ')} in ${cache}\n`);
  try {
    mkdirSync(cache, { recursive: true });
  } catch (error) {
    return error.message;
  }
  // Claude Code installs its program with a package script.
  const options = ['--ignore-scripts=false', '--prefer-offline', '--fetch-retries=1'];
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
  const npm = spawnSync('npm', ['install', '--prefix', cache, '--save-exact', ...options, ...quiet, ...packages], {
    cwd: cache,
    encoding: 'utf8',
    timeout: INSTALL_MAX_MS,
  });
  if (npm.error !== undefined) return `npm: ${npm.error.message}`;
  if (npm.status !== 0) return firstLine(npm.stderr) ?? `npm ended with ${npm.status ?? npm.signal}`;
  const [still] = missing.find(([, agent]) => !isInstalled(agent)) ?? [];
  return still === undefined ? null : `${still} was installed, and does not run`;
}

/** By its own output: a package can be installed without its program. */
function isInstalled({ program, version }) {
  const { stdout } = spawnSync(join(cache, 'node_modules/.bin', program), ['--version'], { encoding: 'utf8' });
  return stdout?.split(/\s+/).includes(version) ?? false;
}

function firstLine(text) {
  return text.split('\n').find((line) => line.trim() !== '');
}
