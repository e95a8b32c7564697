// The configuration: that of the user, overridden by that of the project.

import { existsSync } from 'node:fs';
import { join } from 'node:path';

import type { Diagnostic } from '../base/diagnostic.ts';
import type { Config } from '../languages/config.ts';
import { DEFAULT_CONFIG, readConfig } from '../languages/config.ts';
import type { Project } from './project.ts';
import { readText, shownPath } from './sources.ts';

export interface Settings {
  /** Defaults replace a file with errors. */
  readonly config: Config;
  readonly diagnostics: readonly Diagnostic[];
}

export function readSettings(project: Project): Settings {
  let config = DEFAULT_CONFIG;
  const diagnostics: Diagnostic[] = [];
  for (const folder of new Set([project.shared, project.meow])) {
    const path = join(folder, 'config.toml');
    if (!existsSync(path)) continue;
    const file = shownPath(project, path);
    const read = readConfig({ file, text: readText(path, file), base: config });
    diagnostics.push(...read.diagnostics);
    config = read.config ?? config;
  }
  return { config, diagnostics };
}
