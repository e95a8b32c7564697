// The commands that agents, steps and people use to communicate with runs: their flags and their help. The commands for
// agents are performed by agent.ts, which must start fast and parses flags itself; here is only their help.

import type { Command } from 'commander';

/** Creates a command from its group, usage, description and help notes. */
type Make = (group: string, usage: string, description: string, notes: string) => Command;

const AGENTS = 'For agents and steps';
const PEOPLE = 'Approvals and questions';

/** `answer` receives the exit status of the command. */
export function addConversationCommands(command: Make, answer: (status: number) => void): void {
  command(PEOPLE, 'gates [--workflow ID] [--json]', 'list open gates', GATES_NOTES)
    .option('--workflow <id>', 'only gates of this run')
    .option('--json', 'print a JSON array')
    .action(async (options: object) => {
      answer(await (await import('./commands/gates.ts')).gates(options));
    });

  command(PEOPLE, 'approve ID GATE [--notes TEXT]', 'approve a gate', DECIDE_NOTES)
    .argument('<id>')
    .argument('<gate>')
    .option('--notes <text>', 'passed to the workflow')
    .option('--as <name>', 'who decides (default: your user name)')
    .action(async (id: string, gate: string, options: object) => {
      answer(await (await import('./commands/decide-gate.ts')).approve(id, gate, options));
    });

  command(PEOPLE, 'reject ID GATE [--reason TEXT]', 'reject a gate', DECIDE_NOTES)
    .argument('<id>')
    .argument('<gate>')
    .option('--reason <text>', 'passed to the workflow')
    .option('--as <name>', 'who decides (default: your user name)')
    .action(async (id: string, gate: string, options: object) => {
      answer(await (await import('./commands/decide-gate.ts')).reject(id, gate, options));
    });

  command(PEOPLE, 'answer ID [GATE] TEXT', 'answer a question of a run', ANSWER_NOTES)
    .argument('<id>')
    .argument('<gate-or-text>')
    .argument('[text]')
    .option('--as <name>', 'who answers (default: your user name)')
    .action(async (id: string, first: string, second: string | undefined, options: object) => {
      const [gate, text] = second === undefined ? [null, first] : [first, second];
      answer(await (await import('./commands/decide-gate.ts')).answerGate(id, gate, text, options));
    });

  command(AGENTS, 'done [--output K=V]… [--json JSON] [--notes TEXT]', 'report a step as done', DONE_NOTES)
    .option('--output <k=v>', 'an output of the step; may be repeated')
    .option('--json <json>', 'outputs as one JSON object')
    .option('--notes <text>', 'stored with the step and shown');

  command(AGENTS, 'prime [--format prompt|json|hook]', "print the agent's current prompt", PRIME_NOTES).option(
    '--format <f>',
    'prompt, json or hook (default: prompt)',
  );

  command(AGENTS, 'session-id [--agent NAME]', "print the id of an agent's session", SESSION_NOTES).option(
    '--agent <name>',
    'default: the calling agent',
  );

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
    'await-approval GATE [--timeout D] [--prompt TEXT]',
    'open a gate and wait for the decision',
    AWAIT_APPROVAL_NOTES,
  )
    .argument('<gate>')
    .option('--timeout <d>', 'maximum wait: 30s, 5m, 24h')
    .option('--prompt <text>', 'the question; meow gates shows it');

  command(AGENTS, 'mcp [FLAGS]', 'serve these commands as MCP tools', MCP_NOTES)
    .option('--agent <name>', 'the agent (default: MEOW_AGENT)')
    .option('--workflow <id>', 'the run (default: MEOW_WORKFLOW)')
    .option('--socket <path>', 'socket of the run (default: MEOW_ORCH_SOCK)')
    .option('--inbox <folder>', 'inbox of the run (default: MEOW_INBOX)');
}

const GATES_NOTES = `
Examples:
  meow gates
  meow gates --workflow wf-ab12cd34 --json
`;

const DECIDE_NOTES = `
The first decision counts: repeating it has no effect, and a different one is refused (exit code 2). You
can decide a gate before it opens. If the run has no engine, the decision takes effect when the run is
resumed.

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

const SESSION_NOTES = `
Examples:
  meow session-id
  meow session-id --agent worker-1
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

Examples:
  meow await-approval review
  meow await-approval review --timeout 24h --prompt "Is the plan good enough to begin?"
`;

const MCP_NOTES = `
A Model Context Protocol server on stdin and stdout, with the tools done, event, ask and status. Adapters
configure it for agents that support MCP. Works only inside a run, or with flags that name one.

Example:
  meow mcp --agent worker --workflow wf-ab12cd34 --inbox /project/.meow/workflows/wf-ab12cd34/inbox
`;
