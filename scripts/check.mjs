// Runs all checks that do not start the built program, in parallel and in well under a minute. Prints one line for each
// part, then the full output of failed parts. Exits with 1 if any failed.
//
//   npm run check                      all parts
//   npm run check -- types lint        only these
//   npm run check -- --but unit        all but these

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The commands of each part. */
const PARTS = {
  types: [
    ['tsc', '-p', 'tsconfig.json'],
    ['tsc', '-p', 'src/page/tsconfig.json'],
  ],
  pure: [['tsc', '-p', 'tsconfig.pure.json']],
  lint: [['oxlint', '--type-aware']],
  format: [['biome', 'format']],
  unused: [['knip', '--no-progress']],
  unit: [['vitest', 'run', '--project', 'unit']],
};

/** Runs the named parts in parallel; resolves to the names of those that failed. */
export async function check(names = Object.keys(PARTS)) {
  const failures = [];
  await Promise.all(
    names.map(async (name) => {
      const began = performance.now();
      const failed = (await Promise.all(PARTS[name].map(run))).filter(({ passed }) => !passed);
      const seconds = ((performance.now() - began) / 1000).toFixed(1).padStart(5);
      process.stdout.write(`${failed.length === 0 ? 'ok  ' : 'FAIL'} ${name.padEnd(7)} ${seconds} s\n`);
      failures.push(...failed.map((failure) => ({ name, ...failure })));
    }),
  );
  for (const { name, command, output } of failures) {
    process.stdout.write(`\n--- ${name}: ${command.join(' ')}\n${output.trimEnd()}\n`);
  }
  return [...new Set(failures.map(({ name }) => name))];
}

function run(command) {
  const [tool, ...args] = command;
  return new Promise((resolve) => {
    const child = spawn(join(root, 'node_modules/.bin', tool), args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    const chunks = [];
    child.stdout.on('data', (chunk) => chunks.push(chunk));
    child.stderr.on('data', (chunk) => chunks.push(chunk));
    const end = (passed, output) => resolve({ command, passed, output });
    child.on('error', (error) => end(false, `${error.message}: are the dependencies installed? Try \`npm ci\`.`));
    child.on('close', (status) => end(status === 0, Buffer.concat(chunks).toString()));
  });
}

function chosen([first, ...rest]) {
  const all = Object.keys(PARTS);
  if (first === undefined) return all;
  const but = first === '--but';
  const names = but ? rest : [first, ...rest];
  const unknown = names.filter((name) => !all.includes(name));
  if (unknown.length > 0) {
    process.stderr.write(`check: no part is named ${unknown.join(', ')}: there are ${all.join(', ')}\n`);
    process.exit(2);
  }
  return all.filter((name) => names.includes(name) !== but);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const failed = await check(chosen(process.argv.slice(2)));
  process.exitCode = failed.length === 0 ? 0 : 1;
}
