// `meow init`: a `.meow` folder with a configuration and an example that runs. What is there already is left as it is.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { nearest } from '../../base/nearest.ts';
import { UsageError } from '../../base/usage-error.ts';
import { isErrno, refusalOf } from '../../stores/refusal.ts';
import { EXIT } from '../exit.ts';
import { findProject } from '../project.ts';
import { say } from '../say.ts';
import { shownPath } from '../workflow.ts';

export function init({ template = 'hello' }: { readonly template?: string }): number {
  const text = Object.hasOwn(TEMPLATES, template) ? TEMPLATES[template] : undefined;
  if (text === undefined) {
    const names = Object.keys(TEMPLATES);
    const guess = nearest(template, names);
    throw new UsageError(
      `there is no template ${JSON.stringify(template)}`,
      `${guess === null ? '' : `did you mean ${guess}? `}There is ${names.join(', ')}`,
    );
  }
  const project = findProject();
  const meow = join(project.cwd, '.meow');
  const example = join(meow, 'templates', `${template}.meow.toml`);
  const made = [write(join(meow, 'config.toml'), CONFIG), write(example, text)];
  for (const { path, isNew } of made) {
    say(`${isNew ? 'wrote' : 'kept '} ${shownPath(project, path)}${isNew ? '' : ' (it was there already)'}`);
  }
  say();
  say(`Run the example:    meow run ${template}`);
  say(`Read and change it: ${shownPath(project, example)}`);
  return EXIT.done;
}

function write(path: string, text: string): { readonly path: string; readonly isNew: boolean } {
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text, { flag: 'wx' });
    return { path, isNew: true };
  } catch (error) {
    if (isErrno(error, 'EEXIST') && error.syscall === 'open') return { path, isNew: false };
    throw refusalOf(error, `write ${path}`, path);
  }
}

const CONFIG = `# Configuration of meow for this project. What is left out is taken from ~/.meow/config.toml, then
# from the defaults, which are shown here.

# The shell that runs the commands of steps.
# shell = "sh"

[limits]
# max_expansion_depth = 100
# max_total_steps = 10000
# max_workflow_file_size = "50MB"
`;

const HELLO = `# An example to begin with. Run it, from the folder that holds .meow:
#
#   meow run hello
#   meow run hello --var name=Ada
#
# Kill meow in the middle if you like: "meow resume ID" goes on where it stood.

[main]
name = "hello"
description = "Greets somebody, in steps that depend on each other."

# What the workflow can be given: --var name=Ada. One with "required = true" must be.
[main.variables]
name = { default = "world", description = "Who is greeted" }

# Steps without "needs" start at once, side by side.
[[main.steps]]
id = "greet"
executor = "shell"
# A value in {{ }} reaches the command as one word, whatever is in it.
command = "echo hello, {{name}}"
# What later steps may use: here, what the command printed.
outputs = { text = { source = "stdout" } }

[[main.steps]]
id = "count"
executor = "shell"
command = "sleep 1; ls | wc -l"
outputs = { files = { source = "stdout", type = "int" } }

# This one waits for both.
[[main.steps]]
id = "report"
executor = "shell"
needs = ["greet", "count"]
command = """
echo {{greet.outputs.text}}
echo "there are {{count.outputs.files}} files here"
"""
# Tried again when it fails, and stopped when it takes too long.
timeout = "30s"
retry = { max_attempts = 3, delay = "1s" }
`;

const TEMPLATES: Readonly<Record<string, string>> = { hello: HELLO };
