// Raymond workflows as templates of MEOW ones: `template = "./review"` for a folder of prompts, a `.md` file for the state to
// begin with, a YAML file with states. Each is compiled once, with names that nothing else in the Program has.

import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';

import { hasErrors } from '../base/diagnostic.ts';
import type { Program } from '../ir/program.ts';
import type { ForeignWorkflows } from '../languages/meow/compile.ts';
import type { Foreign } from '../languages/meow/link.ts';
import { compileRaymond } from '../languages/raymond/compile.ts';
import type { RaymondInput } from '../languages/raymond/compile.ts';
import { shownPath } from './workflow.ts';

export interface ForeignRequest {
  /** Where messages name files from. */
  readonly cwd: string;
  /** Folders in which names are searched that are not beside the file that they stand in. */
  readonly folders: readonly string[];
  /** Names that blocks must not have. */
  readonly taken: Iterable<string>;
  /** How the workflow at a path is compiled; absolute. */
  input(path: string): Omit<RaymondInput, 'given' | 'within'>;
}

export function foreignWorkflows(request: ForeignRequest): ForeignWorkflows {
  const taken = new Set(request.taken);
  const machines = new Set<string>();
  const met = new Map<string, Foreign>();
  const programs: Program[] = [];
  const compile = (path: string): Foreign => {
    const name = nameOf(path, machines);
    const within = { machine: name, prefix: `${name}-`, taken, machines };
    const { program, diagnostics } = compileRaymond({ ...request.input(path), given: [], within });
    if (program === null || hasErrors(diagnostics)) {
      const file = shownPath(request, path);
      const [first] = diagnostics.filter(({ severity }) => severity === 'error');
      const message = `${file} has problems${first === undefined ? '' : `: ${first.message}`}`;
      return { kind: 'refused', message, hint: `See all of them: meow validate ${file}.` };
    }
    programs.push(program);
    return { kind: 'found', entry: program.entry };
  };
  return {
    find: (from, name) => {
      const path = [dirname(resolve(request.cwd, from)), ...request.folders]
        .map((folder) => resolve(folder, name))
        .find(isRaymond);
      if (path === undefined) return null;
      const known = met.get(path) ?? compile(path);
      met.set(path, known);
      return known;
    },
    met: () => ({
      blocks: Object.assign({}, ...programs.map(({ blocks }) => blocks)) as Program['blocks'],
      machines: Object.assign({}, ...programs.map((program) => program.machines)) as Program['machines'],
      steerings: Object.assign({}, ...programs.map(({ steerings }) => steerings)) as Program['steerings'],
    }),
  };
}

function nameOf(path: string, machines: Set<string>): string {
  const plain =
    basename(path)
      .replace(/\.[^.]*$/, '')
      .replaceAll(/[^A-Za-z0-9_-]/g, '_') || 'machine';
  let name = plain;
  for (let n = 2; machines.has(name); n += 1) name = `${plain}_${n}`;
  machines.add(name);
  return name;
}

function isRaymond(path: string): boolean {
  if (path.includes('\0') || !existsSync(path)) return false;
  if (statSync(path).isDirectory()) {
    return ['1_START.md', 'START.md', '1_START.sh', 'START.sh'].some((name) => existsSync(resolve(path, name)));
  }
  if (path.endsWith('.md')) return true;
  return /\.ya?ml$/.test(path) && /^states\s*:/m.test(readFileSync(path, 'utf8'));
}
