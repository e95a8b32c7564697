// The real Claude Code and Codex, as `npm run test:agents` installs them, and homes in which they can reach only a
// scripted model: all other traffic goes to a proxy that does not exist.
//
// MEOW_AGENTS_CACHE names the folder of the installation. If it is not set: `describe.skipIf(!AGENTS_INSTALLED)`.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ModelServer } from './model-server.ts';

const CACHE = process.env['MEOW_AGENTS_CACHE'];
const PROGRAMS = join(CACHE ?? '', 'node_modules/.bin');

export const CLAUDE = join(PROGRAMS, 'claude');
export const CODEX = join(PROGRAMS, 'codex');

// The tests may run inside an agent, whose environment must not reach these.
for (const name of Object.keys(process.env)) {
  if (/^(CLAUDE|ANTHROPIC_|CODEX_|OPENAI_)/.test(name)) delete process.env[name];
}

/** Tests that need the agents are skipped if they are not installed. */
export const AGENTS_INSTALLED = CACHE !== undefined;

const KEY = 'a-key-that-opens-nothing-but-loopback';
/** Nobody listens there. */
const NOWHERE = 'http://127.0.0.1:9';

export interface Household {
  readonly model: ModelServer;
  /** Folders that are trusted without a question. Codex needs the root of each repository. */
  readonly trusted: readonly string[];
}

/**
 * Creates a home in which both agents have been used before: they know their key and the folders, and show no dialog at
 * the start. Returns the environment for starting them. Call it before: an agent rewrites these files.
 */
export function furnish(home: string, { model, trusted }: Household): Readonly<Record<string, string>> {
  const claude = join(home, '.claude');
  mkdirSync(claude, { recursive: true });
  const projects = Object.fromEntries(trusted.map((folder) => [folder, { hasTrustDialogAccepted: true }]));
  write(join(home, '.claude.json'), {
    hasCompletedOnboarding: true,
    theme: 'dark',
    customApiKeyResponses: { approved: [KEY.slice(-20)], rejected: [] },
    projects,
  });
  write(join(claude, 'settings.json'), { skipDangerousModePermissionPrompt: true });

  const codex = join(home, '.codex');
  mkdirSync(codex, { recursive: true });
  writeFileSync(join(codex, 'config.toml'), codexConfig(model, trusted));
  return agentEnvironment(home, model);
}

/** The same for a new home, where they ask everything that they ask a new user. */
export function agentEnvironment(home: string, model: ModelServer): Readonly<Record<string, string>> {
  return {
    HOME: home,
    PATH: `${PROGRAMS}:${process.env['PATH'] ?? ''}`,
    HTTP_PROXY: NOWHERE,
    HTTPS_PROXY: NOWHERE,
    NO_PROXY: '127.0.0.1',

    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: KEY,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL: '1',
    // The default retries a permanent error for minutes.
    CLAUDE_CODE_MAX_RETRIES: '1',
    DISABLE_AUTOUPDATER: '1',
    DISABLE_ERROR_REPORTING: '1',
    DISABLE_TELEMETRY: '1',
    // Without it, root may not skip permissions.
    IS_SANDBOX: '1',

    SCRIPTED_MODEL_KEY: KEY,
  };
}

function codexConfig(model: ModelServer, trusted: readonly string[]): string {
  return [
    'model = "scripted"',
    'model_provider = "scripted"',
    'check_for_update_on_startup = false',
    '[model_providers.scripted]',
    'name = "scripted"',
    `base_url = "${model.url}/v1"`,
    'env_key = "SCRIPTED_MODEL_KEY"',
    'wire_api = "responses"',
    'request_max_retries = 1',
    'stream_max_retries = 1',
    ...trusted.flatMap((folder) => [`[projects.${JSON.stringify(folder)}]`, 'trust_level = "trusted"']),
    '',
  ].join('\n');
}

function write(file: string, value: unknown): void {
  writeFileSync(file, JSON.stringify(value));
}
