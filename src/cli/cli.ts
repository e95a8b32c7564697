// The commands of `meow` and their flags. Each command has its own file, which is loaded when it is called.

import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';

import { UsageError } from '../base/errors.ts';
import { own } from '../base/json.ts';
import { didYouMean } from '../base/names.ts';
import type { CompletedCommand } from './completion.ts';
import { AGENT_HELP, type AgentCommandHelp, NOTES, PROGRAM_NOTES } from './help.ts';
import { EXIT, exitOnUncaughtError, flushed, hasLostOutput, print, printLine, report } from './output.ts';
import { lineWidth } from './terminal.ts';

declare const MEOW_VERSION: string;

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
  const meant = didYouMean(name, known).replace('mean ', 'mean meow ');
  throw new UsageError(`unknown command ${JSON.stringify(name)}`, `${meant}all commands: meow help`);
}

function namesOf(program: Command): readonly string[] {
  return program.commands.flatMap((command) => [command.name(), ...command.aliases()]);
}

function completed(command: Command): CompletedCommand {
  const { registeredArguments: taken } = command;
  const flags = command.options.flatMap(({ long, short, hidden, description, required }) => {
    const names = [long, short].filter((flag) => typeof flag === 'string');
    return hidden ? [] : [{ names, description, needsValue: required }];
  });
  return {
    name: command.name(),
    aliases: command.aliases(),
    description: command.description(),
    arguments: taken.length,
    repeats: taken.at(-1)?.variadic === true,
    flags: [...flags, { names: ['--help', '-h'], description: 'show this help', needsValue: false }],
  };
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

  const command = (group: string, usage: string, description: string, notes?: string): Command => {
    const [name = '', ...rest] = usage.split(' ');
    const made = program.command(name).description(description).helpGroup(group);
    made.addHelpText('after', notes ?? own<string>(NOTES, name) ?? '').usage(rest.join(' '));
    return made.allowExcessArguments(false).helpOption('-h, --help', 'show this help');
  };
  /** An action that loads its command and calls it with what commander passes. */
  const calls =
    <A extends readonly unknown[]>(load: () => Promise<(...args: A) => number | Promise<number>>) =>
    async (...args: A): Promise<void> =>
      answer(await (await load())(...args));

  const run = addStartFlags(command('Running', 'run PATH[#WORKFLOW] [FLAGS]', 'run a workflow').argument('[path]'))
    .option('--var-stdin <k>', 'set a variable to the text on standard input')
    .option('--id <id>', 'id of the run (default: wf- and eight random characters)')
    .option('--dry-run', 'compile, check and print the steps; start nothing')
    .option('--resume <id>', 'resume a run; the same as: meow resume ID')
    .option('--workflow <file.yaml>', 'resume the run of this state file')
    .option('--fleet', 'create the run in the fleet; a worker drives it');
  addRunFlags(run).action(calls(async () => (await import('./commands/run.ts')).run));

  const serve = 'serve [--listen ADDR] [--port N] [FLAGS]';
  command('Running', serve, 'resume runs, start schedules and answer hooks, until it is stopped')
    .option('--listen <addr>', 'address to listen on (default: 127.0.0.1)')
    .option('--port <n>', 'port; 0 takes any (default: 7467)', port)
    .option('--json', 'print one JSON object once it is ready, and nothing else')
    .option('--install', 'start it with the session of this user (systemd, launchd)')
    .option('--uninstall', 'stop it and undo --install')
    .option('--status', 'print whether it is running and installed')
    .action(calls(async () => (await import('./commands/serve.ts')).serve));

  command('Running', 'worker [--room N] [--drain D]', 'drive runs of the fleet on this machine, until it is stopped')
    .option('--room <n>', 'runs at once (default: 4)', positive)
    .option('--drain <d>', 'when told to stop, wait so long for its runs to end (default: 0s)')
    .action(calls(async () => (await import('./commands/worker.ts')).worker));

  const schedules = 'schedule ACTION [NAME] [CRON] [PATH] [FLAGS]';
  const schedule = command('Running', schedules, 'start workflows at set times, while meow serve is running')
    .arguments('<action> [name] [cron] [path]')
    .option('--timezone <tz>', 'time zone of CRON, such as Europe/Berlin (default: that of the machine): add')
    .option('--overlap <o>', 'while an earlier run is active: skip, queue or allow (default: skip): add')
    .option('--missed <m>', 'times at which meow serve did not run: once or skip (default: once): add')
    .option('--jitter <d>', 'delay each start by a random time of at most this: add')
    .option('--from <iso>', 'a moment (default: now): next')
    .option('--count <n>', 'how many (default: 5): next', positive)
    .option('--json', 'print JSON: list, next, run');
  const ofSchedules = new Set(schedule.options);
  addLimits(addStartFlags(schedule)).action(
    calls(async () => {
      const { schedule: act } = await import('./commands/schedule.ts');
      const ofRun = schedule.options.filter((option) => !ofSchedules.has(option));
      return (action: string, name: string | undefined, cron: string | undefined, path: string | undefined) =>
        act(action, [name, cron, path], schedule.opts(), givenFlags(schedule, ofRun));
    }),
  );

  const resume = command('Running', 'resume ID [FLAGS]', 'resume a run')
    .argument('<id>')
    .option('--reload', 'start a fork with the workflow file as it is now')
    .option('--fleet', 'let a worker of the fleet resume it')
    .option('--here', 'with --fleet: on this machine, although its files are on another');
  addRunFlags(resume).action(calls(async () => (await import('./commands/run.ts')).resume));

  const fork = command('Running', 'fork ID [FLAGS]', 'start a new run that keeps finished steps of another')
    .argument('<id>')
    .option('--from <step>', 'run this step again, and everything that depends on it', collect)
    .option('--source <path>', 'workflow to use (default: the one stored with the run)')
    .option('--var <k=v>', 'set a variable, parsed as the type that the workflow declares', collect)
    .option('--var-json <k=JSON>', 'set a variable to a JSON value', collect)
    .option('--var-env <k=NAME>', 'set a variable to the value of an environment variable, as a secret', collect)
    .option('--meta <k=v>', 'store a note with the run; status shows it', collect)
    .option('--id <id>', 'id of the new run (default: wf- and eight random characters)')
    .option('--adapter <name>', 'adapter of every agent, overriding the workflow: with --source')
    .option('--permissions <p>', 'what agents may do without asking: ask (nothing), edits (change files) or all')
    .option('--allow-outside', 'let states of a state machine work in folders outside of this one')
    .option('--dry-run', 'print what would be kept and what would run, and why; start nothing');
  const forks = async () => {
    const { fork: start } = await import('./commands/run.ts');
    return (id: string, options: Parameters<typeof start>[1]) => start(id, options);
  };
  addRunFlags(fork).action(calls(forks));

  command('Running', 'merge ACTION [KEY] [FLAGS]', 'merge checked work of a worktree into a branch')
    .arguments('<action> [key]')
    .option('--worktree <dir>', 'worktree whose last commit is offered (default: the working directory)')
    .option('--target <branch>', 'branch to merge into (default: main): offer')
    .option('--check <cmd>', 'a command that must pass on the merged tree; may be repeated: offer', collect)
    .option('--id <key>', 'identifies the offer (default: the calling step, or the commit): offer')
    .option('--json', 'print one JSON object')
    .action(calls(async () => (await import('./commands/merge.ts')).merge));

  command('Running', 'stop ID [--force] [--fleet]', 'stop a run')
    .argument('<id>')
    .option('--force', 'kill its commands at once instead of terminating them gracefully')
    .option('--fleet', 'a run of the fleet')
    .action(calls(async () => (await import('./commands/stop.ts')).stop));

  const show = "show a run's status (default: the most recently active run)";
  command('Inspecting runs', 'status [ID] [--watch] [--fleet] [--json]', show)
    .argument('[id]')
    .option('--json', 'print one JSON object')
    .option('--watch', 'follow the run until it has ended')
    .option('--fleet', 'a run of the fleet')
    .action(calls(async () => (await import('./commands/status.ts')).status));

  command('Inspecting runs', 'top [--once] [--json] [--project DIR]…', 'watch all runs of this machine')
    .option('--once', 'print the runs and exit')
    .option('--json', 'print one JSON object and exit')
    .option('--project <dir>', 'only this project; may be repeated (default: all that have run something)', collect)
    .action(calls(async () => (await import('./commands/top.ts')).top));

  command('Inspecting runs', 'ui [export ID] [FLAGS]', 'see and steer all runs of this machine in a browser')
    .arguments('[action] [id]')
    .option('--port <n>', 'port of the address (default: 6369, or a free one)', port)
    .option('--open', 'open the address in your browser')
    .option('--read-only', 'only show: refuse every decision, key and start')
    .option('--project <dir>', 'only this project; may be repeated (default: all that have run something)', collect)
    .option('--listen <host:port>', 'also for other machines: needs a certificate')
    .option('--tls-cert <file>', 'certificate for --listen, in PEM format')
    .option('--tls-key <file>', 'private key of the certificate, in PEM format')
    .option('--insecure-plain-http', 'listen without a certificate: the token can be read on the network')
    .option('--json', 'print the address, port and pid as one JSON object')
    .option('--with-outputs', 'with the ends of the outputs of steps: export')
    .action(calls(async () => (await import('./commands/ui.ts')).ui));

  command('Inspecting runs', 'list [--status S] [--fleet] [--json]', 'list runs, the newest first')
    .alias('ls')
    .option('--status <s>', 'only runs with this status')
    .option('--fleet', 'runs of the fleet')
    .option('--json', 'print a JSON array')
    .action(calls(async () => (await import('./commands/list.ts')).list));

  command('Inspecting runs', 'cost [RUN…] [FLAGS]', 'show what turns of agents have cost (default: all runs here)')
    .argument('[run...]')
    .option('--all', 'all runs of all projects of this user')
    .option('--since <when>', 'only turns since then: 7d ago, or since a date')
    .option('--by <key>', 'run, workflow, step, agent, adapter, model or day (default: run)')
    .option('--json', 'print one JSON object')
    .action(calls(async () => (await import('./commands/cost.ts')).cost));

  command('Inspecting runs', 'show ID [STEP] [--steps] [--fleet] [--json]', 'show a run or one of its steps in full')
    .arguments('<id> [step]')
    .option('--steps', 'show every step in full')
    .option('--fleet', 'a run of the fleet')
    .option('--json', 'print one JSON object')
    .action(calls(async () => (await import('./commands/show.ts')).show));

  command('Inspecting runs', 'trace ID [--follow] [--fleet] [--json]', 'show what happened, in order')
    .argument('<id>')
    .option('-f, --follow', 'follow the run until it has ended')
    .option('--fleet', 'a run of the fleet')
    .option('--json', 'print one JSON object per decision')
    .action(calls(async () => (await import('./commands/trace.ts')).trace));

  addRunFlag(command('Inspecting runs', 'agents [--run ID] [--json]', 'list agents and their steps'))
    .option('--json', 'print a JSON array')
    .action(calls(async () => (await import('./commands/agents.ts')).agents));

  command('Inspecting runs', 'attach ID AGENT [FLAGS]', "open an agent's terminal in this one")
    .arguments('<id> <agent>')
    .option('-r, --read-only', 'watch without being able to type')
    .option('--print', 'print the tmux command instead of running it')
    .action(calls(async () => (await import('./commands/agents.ts')).attach));

  command('Inspecting runs', 'logs ID [STEP] [--attempt N] [--follow] [FLAGS]', "print a step's output")
    .arguments('<id> [step]')
    .option('--attempt <n>', 'attempt to print (default: the latest)', positive)
    .option('-f, --follow', 'follow the step until it has ended')
    .option('--raw', 'print the bytes as they are')
    .option('--fleet', 'a run of the fleet')
    .action(calls(async () => (await import('./commands/logs.ts')).logs));

  command('Inspecting runs', 'why ID [STEP] [--fleet]', "explain a step's status")
    .arguments('<id> [step]')
    .option('--fleet', 'a run of the fleet')
    .action(calls(async () => (await import('./commands/show.ts')).why));

  command('Inspecting runs', 'diff ID ID [--json]', 'show what differs between two runs')
    .arguments('<a> <b>')
    .option('--json', 'print one JSON object')
    .action(calls(async () => (await import('./commands/diff.ts')).diff));

  command('Writing workflows', 'init [--template NAME]', 'create a .meow folder with an example')
    .option('--template <name>', 'hello, work-loop, parallel, gate or recovery (default: hello)')
    .action(calls(async () => (await import('./commands/init.ts')).init));

  command('Writing workflows', 'validate PATH… [--json]', 'check workflows and report every problem')
    .argument('<paths...>')
    .option('--json', 'print a JSON array')
    .action(calls(async () => (await import('./commands/validate.ts')).validate));

  command('Writing workflows', 'schema [NAME]', 'print a JSON Schema, by which editors check and complete files')
    .argument('[name]')
    .action(calls(async () => (await import('./commands/schema.ts')).schema));

  command('Writing workflows', 'graph PATH|ID [--format F]', 'show the steps and their dependencies')
    .argument('<path-or-id>')
    .option('--format <f>', 'text, mermaid, dot, svg or json (default: text)', graphFormat)
    .option('--coverage <file>', 'mark the steps that the tests of this file reach')
    .action(calls(async () => (await import('./commands/graph.ts')).graph));

  command('Writing workflows', 'test [PATH…] [FLAGS]', 'run the tests of workflows, without agents')
    .argument('[paths...]')
    .option('-t <pattern>', 'only tests whose name contains this; * is a wildcard')
    .option('--crash', 'repeat each test with the engine killed before and after every record')
    .option('--faults <n>', 'repeat each test in this many random worlds in which things go wrong', positive)
    .option('--seed <number>', 'repeat the worlds of a seed that --faults has printed', seedOf)
    .option('--coverage [percent]', 'list steps and routes that no test reached; fail below a percentage')
    .option('--from <run>', 'print a test that repeats a run, instead of running tests')
    .option('--name <name>', 'name of that test')
    .option('-o <file>', 'write that test to a file')
    .option('--update', 'write the traces that tests name instead of comparing them')
    .option('--watch', 'repeat the tests of what changed, until Ctrl-C')
    .option('--junit <file>', 'also write the results as JUnit XML')
    .option('--json', 'print a line of JSON for each test')
    .action(calls(async () => (await import('./commands/test.ts')).test));

  command('Writing workflows', 'plan PATH --since RUN [FLAGS]', 'show what a fork of a run would keep, and why')
    .argument('<path>')
    .option('--since <run>', 'the run to fork')
    .option('--var <k=v>', 'set a variable, parsed as the type that the workflow declares', collect)
    .option('--var-json <k=JSON>', 'set a variable to a JSON value', collect)
    .option('--var-env <k=NAME>', 'set a variable to the value of an environment variable, as a secret', collect)
    .option('--json', 'print one JSON object')
    .action(calls(async () => (await import('./commands/fork.ts')).plan));

  command('Writing workflows', 'prove PATH[#WORKFLOW] [FLAGS]', 'explore everything that can happen to a run')
    .argument('<path>')
    .option('--var <k=v>', 'set a variable, parsed as the type that the workflow declares', collect)
    .option('--visits <n>', 'how often a block may be entered inside itself (default: 3)', positive)
    .option('--states <n>', 'explore at most so many states (default: 100000)', positive)
    .option('--price <adapter=usd>', 'dollars for a turn of this adapter', collect)
    .option('--json', 'print one JSON object')
    .action(calls(async () => (await import('./commands/prove.ts')).prove));

  command('Setup and maintenance', 'adapter ACTION [ARGUMENT] [FLAGS]', 'manage agent adapters')
    .arguments('<action> [argument]')
    .option('--project', 'use the project folder instead of your home folder: install, remove')
    .option('--force', 'replace an adapter of the same name: install')
    .option('--json', 'print JSON: list, show')
    .action(calls(async () => (await import('./commands/adapter.ts')).adapter));

  command('Setup and maintenance', 'fleet ACTION [ARGUMENTS] [FLAGS]', 'set up, check and show a fleet of machines')
    .argument('<action>')
    .argument('[arguments...]')
    .option('--namespace <name>', 'instead of the one in the address: init, role, check')
    .option('--stop', 'stop the database again: dev')
    .option('--json', 'print one JSON object: status, check')
    .action(calls(async () => (await import('./commands/fleet.ts')).fleet));

  command('Setup and maintenance', 'notify test [--json]', 'send a test to every channel of notifications')
    .argument('<action>')
    .option('--json', 'print a JSON array')
    .action(calls(async () => (await import('./commands/notify.ts')).notify));

  command('Setup and maintenance', 'lsp [--stdio]', 'start a language server for editors on stdin and stdout')
    .option('--stdio', 'the only channel; accepted because editors pass it')
    .action(calls(async () => (await import('./commands/lsp.ts')).lsp));

  command('Setup and maintenance', 'completion SHELL', 'print a script that completes commands in bash, zsh or fish')
    .argument('<shell>')
    .action(
      calls(async () => {
        const { completion } = await import('./commands/completion.ts');
        return (shell: string) => completion(program.commands.map(completed), shell);
      }),
    );

  command('Setup and maintenance', 'doctor [--fix] [--json]', 'check the machine, and find what ended runs have left')
    .option('--fix', 'end and remove what ended runs have left, after asking')
    .option('--yes', 'do not ask: with --fix')
    .option('--json', 'print one JSON object')
    .action(calls(async () => (await import('./commands/doctor.ts')).doctor));

  command(
    'Setup and maintenance',
    'gc [RUN…] [--older-than AGE] [--dry-run]',
    'remove ended runs, or what they left in git',
  )
    .argument('[run...]')
    .option('--older-than <age>', 'whole runs that ended longer ago: 30d')
    .option('--keep <n>', 'whole runs, but not the N newest')
    .option('--status <status>', 'whole runs that are done, failed or stopped; may be repeated', collect)
    .option('--logs-only', 'only the logs of runs')
    .option('--force', 'also if work is lost; only for runs named on the command line')
    .option('--dry-run', 'print what would be removed')
    .option('--json', 'print a JSON array')
    .action(calls(async () => (await import('./commands/gc.ts')).gc));

  command(
    'Setup and maintenance',
    'export RUN [-o FILE.tar.gz] | --otlp',
    'write a run to an archive, without secrets, or send its trace',
  )
    .argument('<run>')
    .option('-o, --output <file>', 'the archive (default: RUN.tar.gz)')
    .option('--no-logs', 'leave out the logs of commands and agents')
    .addOption(
      new Option('--otlp', 'send the trace to the OpenTelemetry receiver of the configuration').conflicts([
        'output',
        'logs',
      ]),
    )
    .option('--json', 'with --otlp: print one JSON object')
    .action(calls(async () => (await import('./commands/export.ts')).exportRun));

  command('Setup and maintenance', 'import FILE', 'read a run from an archive')
    .argument('<file>')
    .action(calls(async () => (await import('./commands/export.ts')).importArchive));

  command('Setup and maintenance', 'report RUN -o FILE.html', 'write a page about a run')
    .argument('<run>')
    .option('-o, --output <file>', 'the page')
    .action(calls(async () => (await import('./commands/export.ts')).report));

  addRunFlag(command(PEOPLE, 'gates [--run ID] [--json]', 'list open gates'))
    .option('--json', 'print a JSON array')
    .action(calls(async () => (await import('./commands/gates.ts')).gates));

  const approve = command(PEOPLE, 'approve ID [GATE] [--notes TEXT]', 'approve a gate')
    .arguments('<id> [gate]')
    .option('--notes <text>', 'passed to the workflow');
  addDeciderFlags(approve, 'decides').action(calls(async () => (await import('./commands/gates.ts')).approve));

  const reject = command(PEOPLE, 'reject ID [GATE] [--reason TEXT]', 'reject a gate')
    .arguments('<id> [gate]')
    .option('--reason <text>', 'passed to the workflow');
  addDeciderFlags(reject, 'decides').action(calls(async () => (await import('./commands/gates.ts')).reject));

  const answering = command(PEOPLE, 'answer ID [GATE] TEXT', 'answer a question of a run');
  addDeciderFlags(answering.arguments('<id> <gate-or-text> [text]'), 'answers').action(
    calls(async () => (await import('./commands/gates.ts')).answer),
  );

  // Only their help: main.ts passes them to agent.ts.
  for (const { usage, argument, description, notes, options } of Object.values<AgentCommandHelp>(AGENT_HELP)) {
    const made = command('For agents and steps', usage, description, notes);
    if (argument !== undefined) made.argument(`<${argument.toLowerCase()}>`);
    for (const [flags, about] of Object.entries(options)) {
      made.addOption(new Option(flags, about).hideHelp(about === ''));
    }
  }

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

const PEOPLE = 'Approvals and questions';

/** `--run`, and its older name. */
function addRunFlag(command: Command): Command {
  return command
    .addOption(new Option('--run <id>', 'only this run').conflicts('workflow'))
    .addOption(new Option('--workflow <id>').hideHelp());
}

function addDeciderFlags(command: Command, verb: string): Command {
  return command
    .option('--as <name>', `who ${verb} (default: your user name)`)
    .option('--sign [keyfile]', 'sign with an SSH key (default: that of git, of the ssh-agent, or ~/.ssh/id_ed25519)');
}

/** What a new run gets. */
function addStartFlags(command: Command): Command {
  return command
    .option('--var <k=v>', 'set a variable, parsed as the type that the workflow declares', collect)
    .option('--var-json <k=JSON>', 'set a variable to a JSON value', collect)
    .option('--var-env <k=NAME>', 'set a variable to the value of an environment variable, as a secret', collect)
    .option('--meta <k=v>', 'store a note with the run; status shows it', collect)
    .option('--language <name>', 'language of the workflow, if PATH does not tell')
    .option('--adapter <name>', 'adapter of every agent, overriding the workflow; sim needs no account')
    .option('--permissions <p>', 'what agents may do without asking: ask (nothing), edits (change files) or all')
    .option('--allow-outside', 'let states of a state machine work in folders outside of this one')
    .option('--background', 'start no turn of an agent in the quiet hours of the configuration')
    .option('--in-place', 'run a Conductor workflow in this working tree, which must be clean');
}

/** Flags of `run` and `resume` alike. */
function addRunFlags(command: Command): Command {
  command
    .option('-d, --detach', 'print the id and return; the run continues in the background')
    .option('--json', "print one JSON object per decision, and a last one for the run's end")
    .option('--only-pending', 'when resuming: do not retry failed steps');
  command.addOption(new Option('--as-engine').hideHelp());
  return addLimits(command);
}

function addLimits(command: Command): Command {
  const limit = (flags: string, description: string, parse: (text: string) => unknown): void => {
    const option = new Option(flags, description).helpGroup('Limits; the run pauses when one is reached');
    command.addOption(option.argParser(parse));
  };
  command.option('--no-wait', 'pause with exit code 3 when the run waits for a person');
  limit('--budget-usd <x>', 'dollars', amount);
  limit('--budget-tokens <n>', 'tokens', positive);
  limit('--extra-usd <x>', 'when resuming: raise every budget by so many dollars', amount);
  limit('--extra-tokens <n>', 'when resuming: raise every budget by so many tokens', positive);
  limit('--max-agents <n>', 'concurrent turns (default: the number of cores, at least 4)', positive);
  limit('--max-transitions <n>', 'transitions of a state machine (default: 1000)', positive);
  const growth = (flags: string, description: string): void => {
    const option = new Option(flags, description).helpGroup('Limits; a step that would exceed one fails');
    command.addOption(option.argParser(positive));
  };
  growth('--max-depth <n>', 'nested expansions (default: max_expansion_depth of the configuration)');
  growth('--max-steps <n>', 'steps of the run (default: max_total_steps of the configuration)');
  return command;
}

/** Those that were given, as words of a command line. */
function givenFlags(command: Command, options: readonly Option[]): readonly string[] {
  return options.flatMap((option) => {
    const name = option.attributeName();
    if (command.getOptionValueSource(name) !== 'cli') return [];
    const value: unknown = command.getOptionValue(name);
    const flag = option.long ?? '';
    if (typeof value === 'boolean') return [flag];
    return (Array.isArray(value) ? value : [value]).flatMap((each) => [flag, String(each)]);
  });
}

function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

function positive(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('It must be a whole number, 1 or more.');
  return Number(text);
}

function port(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new InvalidArgumentError('It must be a whole number from 0 to 65535.');
  return Number(text);
}

function seedOf(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number, 0 or more.');
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
