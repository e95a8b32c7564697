// The commands that agents, steps and people use to communicate with runs: their flags and their help. The commands for
// agents are performed by agent.ts, which must start fast and parses flags itself; here is only their help.

import { type Command, Option } from 'commander';

/** Creates a command from its group, usage, description and help notes. */
type Make = (group: string, usage: string, description: string, notes?: string) => Command;

const AGENTS = 'For agents and steps';
const PEOPLE = 'Approvals and questions';

/** Help notes that are only examples. */
export function examples(...commands: readonly string[]): string {
  return `\nExamples:\n${commands.map((command) => `  ${command}\n`).join('')}`;
}

/** An action that loads its command, calls it with what commander passes, and gives the exit status to `answer`. */
export function calls<A extends readonly unknown[]>(
  answer: (status: number) => void,
  load: () => Promise<(...args: A) => number | Promise<number>>,
): (...args: A) => Promise<void> {
  return async (...args) => answer(await (await load())(...args));
}

/** `--run`, and its older name. */
export function addRunFlag(command: Command): Command {
  return command
    .addOption(new Option('--run <id>', 'only this run').conflicts('workflow'))
    .addOption(new Option('--workflow <id>').hideHelp());
}

/** `answer` receives the exit status of the command. */
export function addConversationCommands(command: Make, answer: (status: number) => void): void {
  addRunFlag(command(PEOPLE, 'gates [--run ID] [--json]', 'list open gates'))
    .addHelpText('after', examples('meow gates', 'meow gates --run wf-ab12cd34 --json'))
    .option('--json', 'print a JSON array')
    .action(calls(answer, async () => (await import('./commands/gates.ts')).gates));

  command(PEOPLE, 'approve ID [GATE] [--notes TEXT]', 'approve a gate', DECIDE_NOTES)
    .arguments('<id> [gate]')
    .option('--notes <text>', 'passed to the workflow')
    .option('--as <name>', 'who decides (default: your user name)')
    .option('--sign [keyfile]', SIGN)
    .action(calls(answer, async () => (await import('./commands/gates.ts')).approve));

  command(PEOPLE, 'reject ID [GATE] [--reason TEXT]', 'reject a gate', DECIDE_NOTES)
    .arguments('<id> [gate]')
    .option('--reason <text>', 'passed to the workflow')
    .option('--as <name>', 'who decides (default: your user name)')
    .option('--sign [keyfile]', SIGN)
    .action(calls(answer, async () => (await import('./commands/gates.ts')).reject));

  command(PEOPLE, 'answer ID [GATE] TEXT', 'answer a question of a run', ANSWER_NOTES)
    .arguments('<id> <gate-or-text> [text]')
    .option('--as <name>', 'who answers (default: your user name)')
    .option('--sign [keyfile]', SIGN)
    .action(calls(answer, async () => (await import('./commands/gates.ts')).answer));

  command(AGENTS, 'done [--output K=V]… [--json JSON] [--notes TEXT]', 'report a step as done', DONE_NOTES)
    .option('--output <k=v>', 'an output of the step; may be repeated')
    .option('--json <json>', 'outputs as one JSON object; also --output-json')
    .addOption(new Option('--output-json <json>').hideHelp())
    .option('--notes <text>', 'stored with the step and shown');

  command(AGENTS, 'prime [--format prompt|json|hook]', "print the agent's current prompt", PRIME_NOTES).option(
    '--format <f>',
    'prompt, json or hook (default: prompt)',
  );

  command(AGENTS, 'session-id [--agent NAME]', "print the id of an agent's session")
    .addHelpText('after', examples('meow session-id', 'meow session-id --agent worker-1'))
    .option('--agent <name>', 'default: the calling agent');

  command(AGENTS, 'event TYPE [--data K=V]…', 'emit an event', EVENT_NOTES)
    .argument('<type>')
    .option('--data <k=v>', 'data of the event; may be repeated');

  command(AGENTS, 'await-event TYPE [--filter K=V]… [--timeout D]', 'wait for an event', AWAIT_EVENT_NOTES)
    .argument('<type>')
    .option('--filter <k=v>', 'match data of the event, or its sender with agent and workflow; may be repeated')
    .option('--timeout <d>', 'maximum wait: 30s, 5m, 1h30m')
    .option('--json', 'print the event as one JSON object');

  command(AGENTS, 'step-status STEP [--is S | --is-not S]', "print a step's status", STEP_STATUS_NOTES)
    .argument('<step>')
    .option('--is <s>', 'exit with 0 if the step has this status, otherwise with 1')
    .option('--is-not <s>', 'exit with 0 if the step has another status, otherwise with 1');

  command(
    AGENTS,
    'await-approval GATE [--timeout D] [--prompt TEXT] [--approver NAME]…',
    'open a gate and wait for the decision',
    AWAIT_APPROVAL_NOTES,
  )
    .argument('<gate>')
    .option('--timeout <d>', 'maximum wait: 30s, 5m, 24h')
    .option('--prompt <text>', 'the question; meow gates shows it')
    .option('--approver <name>', 'only NAME, agent:NAME or ssh:NAME may decide; may be repeated');

  command(AGENTS, 'mcp [FLAGS]', 'serve these commands as MCP tools', MCP_NOTES)
    .option('--agent <name>', 'the agent (default: MEOW_AGENT)')
    .option('--workflow <id>', 'the run (default: MEOW_WORKFLOW)')
    .option('--socket <path>', 'socket of the run (default: MEOW_ORCH_SOCK)')
    .option('--inbox <folder>', 'inbox of the run (default: MEOW_INBOX)');
}

const SIGN = 'sign with an SSH key (default: that of git, of the ssh-agent, or ~/.ssh/id_ed25519)';

const DECIDE_NOTES = `
The first decision counts: repeating it has no effect, and a different one is refused (exit code 2). You
can decide a gate before it opens. If the run has no engine, the decision takes effect when the run is
resumed.

Only people decide: inside of a run, the command is refused (exit code 2), unless the gate lists the agent
that calls it. A decision is proven with your key, ~/.meow/decision.key, or signed with --sign.

Examples:
  meow approve wf-ab12cd34 review --notes "looks good"
  meow reject wf-ab12cd34 review --reason "needs tests"
`;

const ANSWER_NOTES = `
GATE may be left out if only one gate is open.

Examples:
  meow answer wf-ab12cd34 "use the staging database"
  meow answer wf-ab12cd34 which-database staging
`;

const DONE_NOTES = `
Exit code: 0 accepted, 1 refused (it prints why, and the step continues), 2 no run to report to. If the
run has no engine, the command waits for one.

Examples:
  meow done
  meow done --output summary="all tests pass" --output count=3
  meow done --json '{"files": ["a.ts", "b.ts"]}' --notes "one test is slow"
`;

const PRIME_NOTES = `
Prints the prompt again if the agent has stopped before it was done. Prints nothing if the agent is idle,
has just reported, or talks with a person. Made for a hook that runs when an agent stops: outside of a
run it prints nothing and exits with 0. With --format hook it prints the reply that makes the agent
continue.
`;

const EVENT_NOTES = `
Does not wait. Made for hooks: outside of a run it does nothing and exits with 0.

Examples:
  meow event progress --data percent=50
  meow event tool-completed --data tool=Write --data file=src/main.ts
`;

const AWAIT_EVENT_NOTES = `
A step receives the first matching event since it became ready, and each event only once. Prints the
data, one name=value per line. Exit code: 0 received, 1 timed out, or the run is ending.

Examples:
  meow await-event agent-stopped --timeout 30s
  meow await-event tool-completed --filter tool=Write --filter agent=worker-1
`;

const STEP_STATUS_NOTES = `
A status is pending, running, completing, done, failed or skipped. STEP is searched next to the calling
step, then in the enclosing scopes. Exit code: 2 if there is no such step.

Examples:
  meow step-status build
  meow step-status main-task --is-not done
`;

const AWAIT_APPROVAL_NOTES = `
Prints the notes, the reason or the answer. Exit code: 0 approved, 1 rejected, 2 an error or the run is
ending, 3 timed out.

Any person may decide. With --approver, only those that it names: a person, an agent of the run
(agent:NAME), or somebody who signs with an SSH key (ssh:NAME).

Examples:
  meow await-approval review
  meow await-approval review --timeout 24h --prompt "Is the plan good enough to begin?"
  meow await-approval release --approver ada --approver grace
`;

const MCP_NOTES = `
A Model Context Protocol server on stdin and stdout, with the tools done, event, ask and status. Adapters
configure it for agents that support MCP. Works only inside a run, or with flags that name one.

Example:
  meow mcp --agent worker --workflow wf-ab12cd34 --inbox /project/.meow/workflows/wf-ab12cd34/inbox
`;
