// The commands of `meow`, their flags and their help. Each command has its own file, which is loaded when it is called.

import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';

import { UsageError } from '../base/errors.ts';
import { nearest } from '../base/names.ts';
import { addConversationCommands, addRunFlag, calls, examples } from './conversation-commands.ts';
import { EXIT, exitOnUncaughtError, flushed, hasLostOutput, print, printLine, report } from './output.ts';
import { lineWidth } from './terminal.ts';

declare const MEOW_VERSION: string;

/** Performs the command; resolves to the exit status. */
export async function main(args: readonly string[]): Promise<number> {
  exitOnUncaughtError();
  const status = await perform(args).catch(report);
  await flushed();
  return status === EXIT.done && hasLostOutput() ? EXIT.failed : status;
}

async function perform(args: readonly string[]): Promise<number> {
  let status: number = EXIT.done;
  const program = commandLine((result) => {
    status = result;
  });
  if (args.length === 0) {
    program.outputHelp();
    return EXIT.done;
  }
  const [first] = args;
  if (first !== undefined && !first.startsWith('-')) requireCommand(program, first);
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return EXIT.done;
    const called = first !== undefined && namesOf(program).includes(first) ? first : null;
    throw refusalOf(error, called, called === null ? '' : await takenForFlag(called, args[1] ?? ''));
  }
  return status;
}

function requireCommand(program: Command, name: string): void {
  const known = namesOf(program);
  if (known.includes(name)) return;
  const guess = nearest(name, known);
  throw new UsageError(
    `unknown command ${JSON.stringify(name)}`,
    `${guess === null ? '' : `did you mean meow ${guess}? `}all commands: meow help`,
  );
}

function namesOf(program: Command): readonly string[] {
  return program.commands.flatMap((command) => [command.name(), ...command.aliases()]);
}

/** A hint, if an argument that looks like a flag is the id of a run. */
async function takenForFlag(command: string, argument: string): Promise<string> {
  if (!argument.startsWith('-')) return '';
  const { findProject } = await import('../app/project.ts');
  const { hasRun, storeOf } = await import('../app/runs.ts');
  if (!(await hasRun(storeOf(findProject()), argument))) return '';
  return `put an id that begins with - last, after --: meow ${command} -- ${argument} · `;
}

function refusalOf(error: CommanderError, command: string | null, remark: string): UsageError {
  const [what = '', guess] = error.message.replace(/^error: /, '').split('\n');
  const meant = guess === undefined ? '' : `${guess.replaceAll(/[()]/g, '').replace(/^Did/, 'did')} `;
  return new UsageError(
    what.replace(/\.$/, '').replace(/^option '([^']*)' argument missing$/, 'option $1 needs a value'),
    `${remark}${meant}${command === null ? 'all commands: meow help' : `its flags: meow help ${command}`}`,
  );
}

/** `answer` receives the exit status of the command. */
function commandLine(answer: (status: number) => void): Command {
  const program = new Command('meow');
  program
    .description('Runs coding-agent workflows and, after a crash, resumes them exactly where they left off.')
    .usage('COMMAND [ARGUMENTS]')
    .option('-V, --version', 'print the version')
    .helpCommand(false)
    .configureOutput({ writeOut: print, writeErr: () => {} })
    .helpOption('-h, --help', 'show this help')
    .configureHelp({
      helpWidth: Math.min(lineWidth(process.stdout), 100),
      subcommandTerm: (command) => `${command.name()} ${command.usage()}`,
    })
    .exitOverride()
    .addHelpText('after', PROGRAM_NOTES);

  const command = (group: string, usage: string, description: string, notes = ''): Command => {
    const [name = '', ...rest] = usage.split(' ');
    const made = program.command(name).description(description).helpGroup(group).addHelpText('after', notes);
    return made.usage(rest.join(' ')).allowExcessArguments(false).helpOption('-h, --help', 'show this help');
  };

  const run = command('Running', 'run PATH[#WORKFLOW] [FLAGS]', 'run a workflow', RUN_NOTES)
    .argument('[path]')
    .option('--var <k=v>', 'set a variable, parsed as the type that the workflow declares', collect)
    .option('--var-json <k=JSON>', 'set a variable to a JSON value', collect)
    .option('--meta <k=v>', 'store a note with the run; status shows it', collect)
    .option('--id <id>', 'id of the run (default: wf- and eight random characters)')
    .option('--dry-run', 'compile, check and print the steps; start nothing')
    .option('--language <name>', 'language of the workflow, if PATH does not tell')
    .option('--adapter <name>', 'adapter of every agent, overriding the workflow; sim needs no account')
    .option('--permissions <p>', 'what agents may do without asking: ask (nothing), edits (change files) or all')
    .option('--allow-outside', 'let states of a state machine work in folders outside of this one')
    .option('--in-place', 'run a Conductor workflow in this working tree, which must be clean')
    .option('--resume <id>', 'resume a run; the same as: meow resume ID')
    .option('--workflow <file.yaml>', 'resume the run of this state file');
  addRunFlags(run).action(calls(answer, async () => (await import('./commands/run.ts')).run));

  const resume = command('Running', 'resume ID [FLAGS]', 'resume a run', RESUME_NOTES).argument('<id>');
  addRunFlags(resume).action(calls(answer, async () => (await import('./commands/run.ts')).resume));

  command('Running', 'stop ID [--force]', 'stop a run', STOP_NOTES)
    .argument('<id>')
    .option('--force', 'kill its commands at once instead of terminating them gracefully')
    .action(calls(answer, async () => (await import('./commands/stop.ts')).stop));

  command(
    'Inspecting runs',
    'status [ID] [--watch] [--json]',
    "show a run's status (default: the most recently active run)",
  )
    .addHelpText(
      'after',
      examples('meow status', 'meow status wf-ab12cd34 --watch', 'meow status wf-ab12cd34 --json | jq .counts'),
    )
    .argument('[id]')
    .option('--json', 'print one JSON object')
    .option('--watch', 'follow the run until it has ended')
    .action(calls(answer, async () => (await import('./commands/status.ts')).status));

  command('Inspecting runs', 'list [--status S] [--json]', 'list runs, the newest first')
    .alias('ls')
    .addHelpText('after', examples('meow list', 'meow list --status failed'))
    .option('--status <s>', 'only runs with this status')
    .option('--json', 'print a JSON array')
    .action(calls(answer, async () => (await import('./commands/list.ts')).list));

  command('Inspecting runs', 'show ID [STEP] [--steps] [--json]', 'show a run or one of its steps in full')
    .addHelpText(
      'after',
      examples('meow show wf-ab12cd34', 'meow show wf-ab12cd34 build', 'meow show wf-ab12cd34 --steps'),
    )
    .arguments('<id> [step]')
    .option('--steps', 'show every step in full')
    .option('--json', 'print one JSON object')
    .action(calls(answer, async () => (await import('./commands/show.ts')).show));

  command('Inspecting runs', 'trace ID [--follow] [--json]', 'show what happened, in order', TRACE_NOTES)
    .argument('<id>')
    .option('-f, --follow', 'follow the run until it has ended')
    .option('--json', 'print one JSON object per decision')
    .action(calls(answer, async () => (await import('./commands/trace.ts')).trace));

  addRunFlag(command('Inspecting runs', 'agents [--run ID] [--json]', 'list agents and their steps', AGENTS_NOTES))
    .option('--json', 'print a JSON array')
    .action(calls(answer, async () => (await import('./commands/agents.ts')).agents));

  command('Inspecting runs', 'attach ID AGENT [FLAGS]', "open an agent's terminal in this one", ATTACH_NOTES)
    .arguments('<id> <agent>')
    .option('-r, --read-only', 'watch without being able to type')
    .option('--print', 'print the tmux command instead of running it')
    .action(calls(answer, async () => (await import('./commands/attach.ts')).attach));

  command('Inspecting runs', 'logs ID [STEP] [--attempt N] [--follow] [--raw]', "print a step's output", LOGS_NOTES)
    .arguments('<id> [step]')
    .option('--attempt <n>', 'attempt to print (default: the latest)', positive)
    .option('-f, --follow', 'follow the step until it has ended')
    .option('--raw', 'print the bytes as they are')
    .action(calls(answer, async () => (await import('./commands/logs.ts')).logs));

  command('Inspecting runs', 'why ID [STEP]', "explain a step's status")
    .addHelpText('after', examples('meow why wf-ab12cd34 deploy'))
    .arguments('<id> [step]')
    .action(calls(answer, async () => (await import('./commands/show.ts')).why));

  command('Writing workflows', 'init [--template NAME]', 'create a .meow folder with an example', INIT_NOTES)
    .option('--template <name>', 'hello, work-loop, parallel, gate or recovery (default: hello)')
    .action(calls(answer, async () => (await import('./commands/init.ts')).init));

  command('Writing workflows', 'validate PATH… [--json]', 'check workflows and report every problem', VALIDATE_NOTES)
    .argument('<paths...>')
    .option('--json', 'print a JSON array')
    .action(calls(answer, async () => (await import('./commands/validate.ts')).validate));

  command('Writing workflows', 'graph PATH|ID [--format F]', 'show the steps and their dependencies', GRAPH_NOTES)
    .argument('<path-or-id>')
    .option('--format <f>', 'text, mermaid, dot, svg or json (default: text)', graphFormat)
    .action(calls(answer, async () => (await import('./commands/graph.ts')).graph));

  command('Setup and maintenance', 'adapter ACTION [ARGUMENT] [FLAGS]', 'manage agent adapters', ADAPTER_NOTES)
    .arguments('<action> [argument]')
    .option('--project', 'use the project folder instead of your home folder: install, remove')
    .option('--force', 'replace an adapter of the same name: install')
    .option('--json', 'print JSON: list, show')
    .action(calls(answer, async () => (await import('./commands/adapter.ts')).adapter));

  command('Setup and maintenance', 'doctor [--json]', 'check that everything needed is installed', DOCTOR_NOTES)
    .option('--json', 'print a JSON array')
    .action(calls(answer, async () => (await import('./commands/doctor.ts')).doctor));

  command(
    'Setup and maintenance',
    'gc [RUN…] [--force] [--dry-run]',
    'remove what ended runs left in the repository',
    GC_NOTES,
  )
    .argument('[run...]')
    .option('--force', 'also if work is lost; only for runs named on the command line')
    .option('--dry-run', 'print what would be removed')
    .option('--json', 'print a JSON array')
    .action(calls(answer, async () => (await import('./commands/gc.ts')).gc));

  addConversationCommands(command, answer);

  command('Other', 'help [COMMAND]', 'show help')
    .argument('[command]')
    .action((name: string | undefined) => {
      if (name === undefined) return program.outputHelp();
      requireCommand(program, name);
      program.commands.find((one) => one.name() === name || one.aliases().includes(name))?.outputHelp();
    });

  command('Other', 'version', 'print the version').action(() => printLine(MEOW_VERSION));

  return program;
}

/** Flags of `run` and `resume` alike. */
function addRunFlags(command: Command): Command {
  const limit = (flags: string, description: string, parse: (text: string) => unknown): void => {
    const option = new Option(flags, description).helpGroup('Limits; the run pauses when one is reached');
    command.addOption(option.argParser(parse));
  };
  command
    .option('-d, --detach', 'print the id and return; the run continues in the background')
    .option('--json', "print one JSON object per decision, and a last one for the run's end")
    .option('--only-pending', 'when resuming: do not retry failed steps')
    .option('--no-wait', 'pause with exit code 3 when the run waits for a person');
  limit('--budget-usd <x>', 'dollars', amount);
  limit('--budget-tokens <n>', 'tokens', positive);
  limit('--max-agents <n>', 'concurrent turns (default: the number of cores, at least 4)', positive);
  limit('--max-transitions <n>', 'transitions of a state machine (default: 1000)', positive);
  const growth = (flags: string, description: string): void => {
    const option = new Option(flags, description).helpGroup('Limits; a step that would exceed one fails');
    command.addOption(option.argParser(positive));
  };
  growth('--max-depth <n>', 'nested expansions (default: max_expansion_depth of the configuration)');
  growth('--max-steps <n>', 'steps of the run (default: max_total_steps of the configuration)');
  command.addOption(new Option('--as-engine').hideHelp());
  return command;
}

function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

function positive(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('It must be a whole number, 1 or more.');
  return Number(text);
}

function graphFormat(text: string): string {
  if (['text', 'mermaid', 'dot', 'svg', 'json'].includes(text)) return text;
  throw new InvalidArgumentError('It must be text, mermaid, dot, svg or json.');
}

function amount(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value <= 0) {
    throw new InvalidArgumentError('It must be an amount above 0.');
  }
  return value;
}

const PROGRAM_NOTES = `
Start here:
  meow init                       create a .meow folder with an example
  meow run hello                  run the example
  meow help run                   show help for a command

Runs are stored in .meow/workflows/ of the working directory, or of the nearest parent folder that has
a .meow. Any unique prefix of an id works.

Exit code: 0 done, 1 failed or invalid workflow, 2 wrong usage, 3 paused, 70 a bug in meow,
130 or 143 stopped by a signal.
`;

const RUN_NOTES = `
PATH is a workflow file. A bare name is searched in .meow/templates/, .meow/workflows/,
~/.meow/templates/ and ~/.meow/workflows/. #WORKFLOW selects one of the workflows in the file; the
default is main.

The first line of output is the run's id. On a terminal, a live tree of the steps follows; otherwise
one line for each change. Steps run in the working directory. Ctrl-C stops the run gracefully; a second
Ctrl-C kills its commands. Either way the run can be resumed.

Examples:
  meow run hello
  meow run deploy.meow.toml --var env=staging --var replicas=3
  meow run ci.meow.toml#nightly -d
  meow run deploy.meow.toml --dry-run --var env=staging

Exit code: 0 done, 1 failed or invalid workflow, 2 wrong usage, 3 paused, 130 or 143 stopped by a
signal.
`;

const RESUME_NOTES = `
Finished steps do not run again. If a command is still running, meow waits for it. If it finished while
there was no engine, its result counts. Only a lost command runs again, as a new attempt. Failed steps
are retried unless you pass --only-pending. Limits are those of the flags and the configuration of now.
A run that is done cannot be resumed.

Examples:
  meow resume wf-ab12cd34
  meow resume wf-ab12cd34 --only-pending
  meow resume wf-ab12cd34 --max-steps 20000
  meow resume wf-ab12cd34 --detach
`;

const STOP_NOTES = `
Terminates the commands of the run, kills those that do not exit, and then runs the workflow's
cleanup_on_stop. Returns when the run has ended. Works for runs in other terminals, for detached runs,
and for a run whose engine has crashed.

Examples:
  meow stop wf-ab12cd34
  meow stop wf-ab12cd34 --force
`;

const TRACE_NOTES = `
Examples:
  meow trace wf-ab12cd34
  meow trace wf-ab12cd34 --follow
  meow trace wf-ab12cd34 --json | jq 'select(.kind == "step-failed")'
`;

const AGENTS_NOTES = `
Lists the agents of unfinished runs, and agents that are still running although their run has ended.
With --run: all agents of one run. An agent is starting, active (it works on a step), idle, stopped
(it was ended, or has no terminal and its run has ended) or gone.

Examples:
  meow agents
  meow agents --run wf-ab12cd34 --json
`;

const ATTACH_NOTES = `
Agents with a terminal run in tmux, each in its own session. Press C-b d to detach. The agent receives
what you type as if meow had typed it.

Examples:
  meow attach wf-ab12cd34 worker
  meow attach wf-ab12cd34 worker --read-only
`;

const LOGS_NOTES = `
The step's stdout goes to stdout, its stderr to stderr. Without STEP: the failed step, else a running one, else
the last. Of an agent without a terminal its messages are shown; on a terminal, control characters are shown as
text. --raw prints the bytes.

Examples:
  meow logs wf-ab12cd34 build
  meow logs wf-ab12cd34 build --attempt 1
  meow logs wf-ab12cd34 build --follow
`;

const INIT_NOTES = `
Writes .meow/config.toml and the chosen example as .meow/templates/NAME.meow.toml, with comments. Every
example runs without an account: its agents are simulated. Existing files are not changed.

Examples:
  meow init && meow run hello
  meow init --template work-loop && meow run work-loop
`;

const VALIDATE_NOTES = `
Prints every problem as PATH:LINE:COLUMN: error|warning CODE: message, with the line and a hint.
Exit code: 1 if there is an error, 2 if a file is missing and the others have no error, otherwise 0.

Examples:
  meow validate deploy.meow.toml
  meow validate .meow/templates/*.toml --json
`;

const ADAPTER_NOTES = `
Actions:
  install SOURCE   install from a folder with an adapter.toml, or from a git repository:
                   github.com/NAME/REPOSITORY or any git URL, optionally with #BRANCH, #TAG or #COMMIT
  list             list all adapters: of the project, of the user, built in
  show NAME        show an adapter's commands, hooks, dialogs and limits
  remove NAME      remove an installed adapter

An adapter defines how an agent is started and controlled. Its commands run with your rights: read them
first. An adapter of the project overrides one of the user, which overrides a built-in one.

Examples:
  meow adapter list
  meow adapter show sim
  meow adapter install ./my-adapter --project
  meow adapter install github.com/someone/adapter-of-theirs#v1.2
  meow adapter remove my-agent

Exit code: 0 success, 1 the adapter is invalid, 2 wrong usage.
`;

const DOCTOR_NOTES = `
Checks what meow needs, and the program of every adapter: whether it is installed, its version, whether
you are logged in, and whether it can start unattended. Prints one line per check, with a fix. Starts no
agent and does not use the network.

Exit code: 0 everything required is installed, 1 something required is missing.

Examples:
  meow doctor
  meow doctor --json | jq '.[] | select(.status != "ok")'
`;

const GC_NOTES = `
A Conductor run has its own worktree and branch, and a snapshot from before each step. Once the run has
ended, gc removes them unless work would be lost: uncommitted changes, or commits on no other branch.

Examples:
  meow gc
  meow gc --dry-run
  meow gc wf-ab12cd34 --force
`;

const GRAPH_NOTES = `
For a file: the steps as written. For a run: the steps with their current status.

Examples:
  meow graph deploy.meow.toml
  meow graph deploy.meow.toml --format svg > deploy.svg
  meow graph wf-ab12cd34 --format mermaid
`;
