// A small agent in a terminal, with its adapter and a workflow that prompts it. For each prompt it runs the script `orders` in
// its folder; whatever else it is told it repeats, with control characters made visible.

import type { Page } from 'playwright-core';

import { type Rig, until } from './rig.ts';

const FOX = `#!/bin/sh
echo 'fox is here'
while :; do
  printf 'fox> '
  IFS= read -r line || exit 0
  case $line in
    *'meow done'*) . ./orders ;;
    *) printf 'heard: '; printf '%s\\n' "$line" | cat -v ;;
  esac
done
`;

const ADAPTER = `[adapter]
name = "fox"
[spawn]
command = "sh ./fox.sh"
resume_command = "sh ./fox.sh"
[ready]
patterns = ['^fox>']
[[dialogs]]
name = "permission"
pattern = '^May I\\? \\(y/n\\)'
approve = ["y", "Enter"]
reject = ["n", "Enter"]
`;

const WORKFLOW = `[main]
[[main.steps]]
id = "start"
executor = "spawn"
agent = "writer"
adapter = "fox"
[[main.steps]]
id = "work"
executor = "agent"
agent = "writer"
prompt = "Go."
needs = ["start"]
`;

/** Starts the run `ID` in the background; resolves when the agent has its prompt. */
export async function startFox(rig: Rig, id: string, orders: string): Promise<void> {
  rig.write('.meow/adapters/fox/adapter.toml', ADAPTER);
  rig.write('fox.sh', FOX);
  rig.write('orders', orders);
  rig.write('fox.meow.toml', WORKFLOW);
  const started = await rig.meow('run', 'fox.meow.toml', '--id', id, '--detach');
  if (started.code !== 0) throw new Error(started.stderr);
  await until(
    () => /delivery":"(?:accepted|blocked-on-dialog)"/.test(rig.read(`.meow/workflows/${id}/journal.jsonl`)),
    'the prompt',
  );
}

/** The text that the page shows of a terminal. */
export function terminalOf(page: Page, agent: string) {
  return page.frameLocator(`iframe[title="Terminal of ${agent}"]`);
}
