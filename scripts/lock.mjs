// Completes package-lock.json after a dependency was added or changed: `npm run lock`.
//
// Tools that ship as a binary have one optional package for each platform. npm omits those from the lockfile that the
// current registry does not have (many mirrors have only a few platforms), and `npm ci` then refuses to install
// anywhere. This adds them, with the platform from their names. They get no integrity hash, as npm adds none for
// packages that it has not seen.

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const SYSTEMS = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32'];
const PROCESSORS = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64'];

const path = fileURLToPath(new URL('../package-lock.json', import.meta.url));
const lock = JSON.parse(readFileSync(path, 'utf8'));

const missing = Object.entries(lock.packages).flatMap(([folder, { optionalDependencies = {}, dev }]) =>
  Object.entries(optionalDependencies)
    .filter(([name]) => !isLocked(folder, name))
    .map(([name, version]) => [`node_modules/${name}`, entry(name, version, dev)]),
);
const inOrder = Object.entries({ ...lock.packages, ...Object.fromEntries(missing) }).toSorted(([a], [b]) =>
  a.localeCompare(b, 'en'),
);
writeFileSync(path, `${JSON.stringify({ ...lock, packages: Object.fromEntries(inOrder) }, null, 2)}\n`);
process.stdout.write(`lock: ${missing.length} packages of other platforms added\n`);

/** Node searches for a package next to and above the importer; so does this. */
function isLocked(folder, name) {
  const inside = folder === '' ? '' : `${folder}/`;
  if (`${inside}node_modules/${name}` in lock.packages) return true;
  return folder !== '' && isLocked(folder.replace(/\/?node_modules\/(@[^/]+\/)?[^/]+$/, ''), name);
}

function entry(name, version, dev) {
  const words = name.split(/[-/]/);
  const os = SYSTEMS.filter((system) => words.includes(system));
  const cpu = PROCESSORS.filter((processor) => words.includes(processor));
  if (cpu.length === 0 || !/^\d/.test(version)) throw new Error(`lock: cannot tell the platform of ${name}@${version}`);
  const libc = os.includes('linux') ? words.flatMap((word) => /^(musl)|^(gnu)/.exec(word)?.slice(1) ?? []) : [];
  return {
    version,
    cpu,
    ...(dev === true ? { dev } : {}),
    ...(libc.length > 0 ? { libc: [libc.includes('musl') ? 'musl' : 'glibc'] } : {}),
    optional: true,
    ...(os.length > 0 ? { os } : {}),
  };
}
