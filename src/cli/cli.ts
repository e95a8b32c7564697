// What can be asked of `meow`: its commands, their flags and their help. Each command lives in its own file and is loaded
// when it is called, so that one pays for nothing that another needs.

import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';

import { nearest } from '../base/nearest.ts';
import { UsageError } from '../base/usage-error.ts';
import { addConversationCommands } from './conversation-commands.ts';
import { EXIT, report } from './exit.ts';
import { flushed, isLost, print } from './output.ts';
import { lineWidth } from './terminal-size.ts';

/** Does what the arguments ask for; resolves to the exit status. */
export async function main(args: readonly string[]): Promise<number> {
  process.on('uncaughtException', (error) => {
    const status = report(error);
    void flushed().then(() => process.exit(status));
  });
  const status = await perform(args).catch(report);
  await flushed();
  return status === EXIT.done && isLost() ? EXIT.failed : status;
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
    const called = program.commands.find((command) => command.name() === first)?.name() ?? null;
    throw refusalOf(error, called, called === null ? '' : await takenForFlag(called, args[1] ?? ''));
  }
  return status;
}

function requireCommand(program: Command, name: string): void {
  const known = program.commands.map((command) => command.name());
  if (known.includes(name)) return;
  const guess = nearest(name, known);
  throw new UsageError(
    `there is no command ${JSON.stringify(name)}`,
    `${guess === null ? '' : `did you mean meow ${guess}? `}all commands: meow help`,
  );
}

/** An id may begin with a dash, and messages name it as it is. */
async function takenForFlag(command: string, argument: string): Promise<string> {
  if (!argument.startsWith('-')) return '';
  const [{ findProject }, { hasRun, storeOf }] = await Promise.all([
    import('../app/project.ts'),
    import('../app/runs.ts'),
  ]);
  if (!(await hasRun(storeOf(findProject()), argument))) return '';
  return `a run whose id begins with - is named last, behind --: meow ${command} -- ${argument} · `;
}

function refusalOf(error: CommanderError, command: string | null, remark: string): UsageError {
  const [what = '', guess] = error.message.replace(/^error: /, '').split('\n');
  const meant = guess === undefined ? '' : `${guess.replaceAll(/[()]/g, '').replace(/^Did/, 'did')} `;
  return new UsageError(
    what.replace(/\.$/, '').replace(/^option '([^']*)' argument missing$/, 'option $1 needs a value'),
    `${remark}${meant}${command === null ? 'all commands: meow help' : `its flags: meow help ${command}`}`,
  );
}

/** `answer` is told the exit status of the command that was called. */
function commandLine(answer: (status: number) => void): Command {
  const program = new Command('meow');
  program
    .description('Runs workflows, and resumes them after a crash where they stood.')
    .usage('COMMAND [ARGUMENTS]')
    .option('-V, --version', 'print the version')
    .helpCommand(false)
    .configureOutput({ writeOut: print, writeErr: () => {} })
    .helpOption('-h, --help', 'show this help')
    .configureHelp({ helpWidth: helpWidth(), subcommandTerm: (command) => `${command.name()} ${command.usage()}` })
    .exitOverride()
    .addHelpText('after', PROGRAM_NOTES);

  const command = (group: string, usage: string, description: string, notes: string): Command => {
    const [name = '', ...rest] = usage.split(' ');
    const made = program.command(name).description(description).helpGroup(group).addHelpText('after', notes);
    return made.usage(rest.join(' ')).allowExcessArguments(false).helpOption('-h, --help', 'show this help');
  };

  const run = command('Running', 'run PATH[#WORKFLOW] [FLAGS]', 'run a workflow', RUN_NOTES)
    .argument('[path]')
    .option('--var <k=v>', 'set a variable of the workflow, as the type it declares', collect)
    .option('--var-json <k=JSON>', 'set a variable to a JSON value', collect)
    .option('--meta <k=v>', 'keep a note with the run; status shows it', collect)
    .option('--id <id>', "the run's id (default: wf- and eight random characters)")
    .option('--dry-run', 'compile, check, and print the steps; start nothing')
    .option('--language <name>', 'language of the workflow, if PATH does not tell')
    .option('--adapter <name>', 'the adapter of every agent, whatever the workflow says; sim needs no account')
    .option('--allow-outside', 'states of a state machine may work in folders outside of this one')
    .option('--in-place', 'a Conductor workflow works in this very tree, which must be clean')
    .option('--resume <id>', 'take up a run again; the same as: meow resume ID')
    .option('--workflow <file.yaml>', 'the same, named by its state file');
  addRunFlags(run).action(async (path: string | undefined, options: object) => {
    answer(await (await import('./commands/run.ts')).run(path ?? null, options));
  });

  const resume = command('Running', 'resume ID [FLAGS]', 'take up a run where it stood', RESUME_NOTES).argument('<id>');
  addRunFlags(resume).action(async (id: string, options: object) => {
    answer(await (await import('./commands/run.ts')).run(null, { ...options, resume: id }));
  });

  command('Running', 'stop ID [--force]', 'stop a run', STOP_NOTES)
    .argument('<id>')
    .option('--force', 'kill its commands at once instead of asking them to end')
    .action(async (id: string, options: object) => {
      answer(await (await import('./commands/stop.ts')).stop(id, options));
    });

  command('Looking', 'status [ID] [--watch] [--json]', 'how a run stands (default: the latest)', STATUS_NOTES)
    .argument('[id]')
    .option('--json', 'as one JSON object')
    .option('--watch', 'stay, and follow it until it has ended')
    .action(async (id: string | undefined, options: object) => {
      answer(await (await import('./commands/status.ts')).status(id ?? null, options));
    });

  command('Looking', 'list [--status S] [--json]', 'all runs, the newest first', LIST_NOTES)
    .option('--status <s>', 'only those with this status')
    .option('--json', 'as a JSON array')
    .action(async (options: object) => {
      answer(await (await import('./commands/list.ts')).list(options));
    });

  command('Looking', 'show ID [STEP] [--steps] [--json]', 'a run, or one of its steps, in full', SHOW_NOTES)
    .argument('<id>')
    .argument('[step]')
    .option('--steps', 'every step in full')
    .option('--json', 'as one JSON object')
    .action(async (id: string, step: string | undefined, options: object) => {
      answer(await (await import('./commands/show.ts')).show(id, step ?? null, options));
    });

  command('Looking', 'trace ID [--follow] [--json]', 'what happened, in order', TRACE_NOTES)
    .argument('<id>')
    .option('-f, --follow', 'stay, and print what happens until the run has ended')
    .option('--json', 'one JSON object a decision')
    .action(async (id: string, options: object) => {
      answer(await (await import('./commands/trace.ts')).trace(id, options));
    });

  command('Looking', 'agents [--workflow ID] [--json]', 'who works for runs, and on what', AGENTS_NOTES)
    .option('--workflow <id>', 'only those of this run')
    .option('--json', 'as a JSON array')
    .action(async (options: object) => {
      answer(await (await import('./commands/agents.ts')).agents(options));
    });

  command('Looking', 'attach ID AGENT [FLAGS]', "an agent's terminal, in this one", ATTACH_NOTES)
    .argument('<id>')
    .argument('<agent>')
    .option('-r, --read-only', 'look on without being able to type')
    .option('--print', 'print the command that does it, and do nothing')
    .action(async (id: string, agent: string, options: object) => {
      answer(await (await import('./commands/attach.ts')).attach(id, agent, options));
    });

  command('Looking', 'logs ID STEP [--attempt N] [--follow]', 'what a step printed', LOGS_NOTES)
    .argument('<id>')
    .argument('<step>')
    .option('--attempt <n>', 'of this attempt (default: the latest)', positive)
    .option('-f, --follow', 'stay, and print what comes until the step has ended')
    .action(async (id: string, step: string, options: object) => {
      answer(await (await import('./commands/logs.ts')).logs(id, step, options));
    });

  command('Looking', 'why ID STEP', 'why a step is where it is', WHY_NOTES)
    .argument('<id>')
    .argument('<step>')
    .action(async (id: string, step: string) => {
      answer(await (await import('./commands/why.ts')).why(id, step));
    });

  command('Writing workflows', 'init [--template NAME]', 'make a .meow folder with an example', INIT_NOTES)
    .option('--template <name>', 'what to begin with: hello, work-loop, parallel, gate or recovery (default: hello)')
    .action(async (options: object) => {
      answer((await import('./commands/init.ts')).init(options));
    });

  command('Writing workflows', 'validate PATH… [--json]', 'find every problem of workflows', VALIDATE_NOTES)
    .argument('<paths...>')
    .option('--json', 'as a JSON array')
    .action(async (paths: readonly string[], options: object) => {
      answer(await (await import('./commands/validate.ts')).validate(paths, options));
    });

  command('Writing workflows', 'graph PATH|ID [--format F]', 'the steps and what they need, as a graph', GRAPH_NOTES)
    .argument('<path-or-id>')
    .option('--format <f>', 'text, mermaid, dot, svg or json (default: text)', graphFormat)
    .action(async (what: string, options: object) => {
      answer(await (await import('./commands/graph.ts')).graph(what, options));
    });

  command('Setting up', 'adapter ACTION [ARGUMENT] [FLAGS]', 'which agents there are, and more of them', ADAPTER_NOTES)
    .argument('<action>')
    .argument('[argument]')
    .option('--project', "in the project's folder, not in that of your home: install, remove")
    .option('--force', 'in place of one of the same name: install')
    .option('--json', 'as JSON: list, show')
    .action(async (action: string, what: string | undefined, options: object) => {
      answer((await import('./commands/adapter.ts')).adapter(action, what ?? null, options));
    });

  command('Setting up', 'doctor [--json]', 'is all there that runs and agents need?', DOCTOR_NOTES)
    .option('--json', 'as a JSON array')
    .action(async (options: object) => {
      answer(await (await import('./commands/doctor.ts')).doctor(options));
    });

  command('Setting up', 'gc [RUN…] [--force] [--dry-run]', 'remove what ended runs left in the repository', GC_NOTES)
    .argument('[run...]')
    .option('--force', 'also where work is lost by it; for runs that are named')
    .option('--dry-run', 'only say what would be removed')
    .option('--json', 'as a JSON array')
    .action(async (runs: string[], options: object) => {
      answer(await (await import('./commands/gc.ts')).gc(runs, options));
    });

  addConversationCommands(command, answer);

  command('Other', 'help [COMMAND]', 'show help', '')
    .argument('[command]')
    .action((name: string | undefined) => {
      if (name === undefined) return program.outputHelp();
      requireCommand(program, name);
      program.commands.find((candidate) => candidate.name() === name)?.outputHelp();
    });

  return program;
}

/** Flags of `run` and `resume` alike. */
function addRunFlags(command: Command): Command {
  const limit = (flags: string, description: string, parse: (text: string) => unknown): void => {
    const option = new Option(flags, description).helpGroup('What agents may use; a run that has used it up pauses');
    command.addOption(option.argParser(parse));
  };
  command
    .option('--detach', 'print the id and return; an engine in the background goes on')
    .option('--json', "print one JSON object a decision, and a last one with the run's end")
    .option('--only-pending', 'when resuming: leave failed steps failed')
    .option('--no-wait', 'pause, with exit status 3, when only a person can go on');
  limit('--budget-usd <x>', 'dollars', amount);
  limit('--budget-tokens <n>', 'tokens', positive);
  limit('--max-agents <n>', 'turns at once (default: the number of cores, at least 4)', positive);
  limit('--max-transitions <n>', 'transitions of a state machine (default: 1000)', positive);
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

function helpWidth(): number {
  return Math.min(lineWidth(process.stdout), 100);
}

const PROGRAM_NOTES = `
Start here:
  meow init                       a .meow folder with an example
  meow run hello                  run it
  meow help run                   more about a command

Runs are kept in .meow/workflows/ of the folder that meow is called in, or of the nearest folder
above that has a .meow. An id may be shortened as long as it stays unique.

Exit status: 0 done, 1 failed or invalid workflow, 2 wrong usage, 3 paused, 70 a bug in meow,
130 or 143 stopped by a signal.
`;

const RUN_NOTES = `
PATH is a workflow file. A bare name is searched in .meow/templates/, .meow/workflows/,
~/.meow/templates/ and ~/.meow/workflows/. #WORKFLOW names one of the workflows in the file; without
it, main is run.

The run's id is the first thing printed. On a terminal a tree of the steps follows and is kept up to
date, elsewhere a line for each change. Steps run in the folder that meow is called in. Ctrl-C stops
the run and lets its commands end; a second Ctrl-C kills them. Either way the run can be resumed.

Examples:
  meow run hello
  meow run deploy.meow.toml --var env=staging --var replicas=3
  meow run ci.meow.toml#nightly --detach
  meow run deploy.meow.toml --dry-run --var env=staging

Exit status: 0 done, 1 failed or invalid workflow, 2 wrong usage, 3 paused, 130 or 143 stopped by a
signal.
`;

const RESUME_NOTES = `
Finished steps are not run again. A command that is still alive is waited for, one that finished while
no engine was there counts as finished, and only a lost one is run again, as a further attempt. Failed
steps are tried again, unless --only-pending is given. A run that is done cannot be resumed.

Examples:
  meow resume wf-ab12cd34
  meow resume wf-ab12cd34 --only-pending
  meow resume wf-ab12cd34 --detach
`;

const STOP_NOTES = `
Asks the commands of the run to end, kills those that do not, and then runs the workflow's
cleanup_on_stop. Returns when the run has ended. It works on runs of other terminals, on detached
ones, and on one whose engine has crashed.

Examples:
  meow stop wf-ab12cd34
  meow stop wf-ab12cd34 --force
`;

const STATUS_NOTES = `
Examples:
  meow status
  meow status wf-ab12cd34 --watch
  meow status wf-ab12cd34 --json | jq .counts
`;

const LIST_NOTES = `
Examples:
  meow list
  meow list --status failed
`;

const SHOW_NOTES = `
Examples:
  meow show wf-ab12cd34
  meow show wf-ab12cd34 build
  meow show wf-ab12cd34 --steps
`;

const TRACE_NOTES = `
Examples:
  meow trace wf-ab12cd34
  meow trace wf-ab12cd34 --follow
  meow trace wf-ab12cd34 --json | jq 'select(.kind == "step-failed")'
`;

const AGENTS_NOTES = `
The agents of the runs that are not over, and those that live on though theirs is; with --workflow all of one
run. An agent is starting, active (it works on a step), idle, stopped (it was ended, or has no terminal and its run
is over) or gone.

Examples:
  meow agents
  meow agents --workflow wf-ab12cd34 --json
`;

const ATTACH_NOTES = `
Agents with a terminal live in tmux, each in a session of its own. To leave it there, press C-b d. What
you type reaches the agent as if meow had typed it.

Examples:
  meow attach wf-ab12cd34 worker
  meow attach wf-ab12cd34 worker --read-only
`;

const LOGS_NOTES = `
What the step wrote to stdout goes to stdout, what it wrote to stderr goes to stderr.

Examples:
  meow logs wf-ab12cd34 build
  meow logs wf-ab12cd34 build --attempt 1
  meow logs wf-ab12cd34 build --follow
`;

const WHY_NOTES = `
Examples:
  meow why wf-ab12cd34 deploy
`;

const INIT_NOTES = `
Writes .meow/config.toml and the chosen example as .meow/templates/NAME.meow.toml, all with comments.
Each runs at once, without an account: its agents are simulated. Nothing that is there already is
changed.

Examples:
  meow init && meow run hello
  meow init --template work-loop && meow run work-loop
`;

const VALIDATE_NOTES = `
Prints every problem as PATH:LINE:COLUMN: error|warning CODE: message, with the line and what to do.
Exit status 1 where there is an error, else 0.

Examples:
  meow validate deploy.meow.toml
  meow validate .meow/templates/*.toml --json
`;

const ADAPTER_NOTES = `
Actions:
  install SOURCE   from a folder with an adapter.toml, or a git repository: github.com/NAME/REPOSITORY,
                   any address that your git knows, with #BRANCH, #TAG or #COMMIT behind it
  list             all adapters: the project's, yours, those that come with meow
  show NAME        what one does: its commands, hooks, questions and limits
  remove NAME      one that was installed

An adapter says how an agent is started and talked to. It has commands that run as you: read them before
you use it. One of the project stands before one of yours, and that before one that comes with meow.

Examples:
  meow adapter list
  meow adapter show sim
  meow adapter install ./my-adapter --project
  meow adapter install github.com/someone/adapter-of-theirs#v1.2
  meow adapter remove my-agent

Exit status: 0 done, 1 the adapter is invalid, 2 wrong usage.
`;

const DOCTOR_NOTES = `
Looks at what meow needs, and at the program of every adapter: whether it is installed, in which version,
whether you are logged in, and what would keep it from being started with nobody there. One line for
each, with what to do about it. No agent is started, and nothing goes out on the network.

Exit status: 0 whatever is needed to run anything is there, 1 something needed is missing.

Examples:
  meow doctor
  meow doctor --json | jq '.[] | select(.status != "ok")'
`;

const GC_NOTES = `
A run of opcodes works in a worktree and on a branch of its own, and keeps what was there before each step. When it has
ended, all that goes, unless something would be lost: changes that are not committed, or commits that no other branch has.

Examples:
  meow gc
  meow gc --dry-run
  meow gc wf-ab12cd34 --force
`;

const GRAPH_NOTES = `
Of a file: the steps as they are written. Of a run: the steps as they stand.

Examples:
  meow graph deploy.meow.toml
  meow graph deploy.meow.toml --format svg > deploy.svg
  meow graph wf-ab12cd34 --format mermaid
`;
