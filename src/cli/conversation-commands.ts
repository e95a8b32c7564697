// The commands by which agents, steps and people talk to runs: their flags and their help. Those for agents are performed
// elsewhere (agent.ts, which must start fast and reads its flags itself); here they are for people to read about.

import type { Command } from 'commander';

/** Makes a command: its group, its usage, its description, and notes for its help. */
type Make = (group: string, usage: string, description: string, notes: string) => Command;

const AGENTS = 'For agents and steps, within a run';
const PEOPLE = 'For people whom a run waits for';

/** `answer` is told the exit status of the command that was called. */
export function addConversationCommands(command: Make, answer: (status: number) => void): void {
  command(PEOPLE, 'gates [--workflow ID] [--json]', 'decisions that runs wait for', GATES_NOTES)
    .option('--workflow <id>', 'only those of this run')
    .option('--json', 'as a JSON array')
    .action(async (options: object) => {
      answer(await (await import('./commands/gates.ts')).gates(options));
    });

  command(PEOPLE, 'approve ID GATE [--notes TEXT]', 'let a run pass a gate', DECIDE_NOTES)
    .argument('<id>')
    .argument('<gate>')
    .option('--notes <text>', 'handed on to the workflow')
    .option('--as <name>', 'who decides (default: your user name)')
    .action(async (id: string, gate: string, options: object) => {
      answer(await (await import('./commands/decide-gate.ts')).approve(id, gate, options));
    });

  command(PEOPLE, 'reject ID GATE [--reason TEXT]', 'do not let a run pass a gate', DECIDE_NOTES)
    .argument('<id>')
    .argument('<gate>')
    .option('--reason <text>', 'handed on to the workflow')
    .option('--as <name>', 'who decides (default: your user name)')
    .action(async (id: string, gate: string, options: object) => {
      answer(await (await import('./commands/decide-gate.ts')).reject(id, gate, options));
    });

  command(PEOPLE, 'answer ID [GATE] TEXT', 'answer what a run asks', ANSWER_NOTES)
    .argument('<id>')
    .argument('<gate-or-text>')
    .argument('[text]')
    .option('--as <name>', 'who answers (default: your user name)')
    .action(async (id: string, first: string, second: string | undefined, options: object) => {
      const [gate, text] = second === undefined ? [null, first] : [first, second];
      answer(await (await import('./commands/decide-gate.ts')).answerGate(id, gate, text, options));
    });

  command(AGENTS, 'done [--output K=V]… [--json JSON] [--notes TEXT]', 'report the work of a step', DONE_NOTES)
    .option('--output <k=v>', 'an output of the step; may be repeated')
    .option('--json <json>', 'outputs as one JSON object')
    .option('--notes <text>', 'kept with the step, and shown');

  command(AGENTS, 'prime [--format prompt|json|hook]', 'what the agent should be doing', PRIME_NOTES).option(
    '--format <f>',
    'prompt, json or hook (default: prompt)',
  );

  command(AGENTS, 'session-id [--agent NAME]', 'the session of an agent', SESSION_NOTES).option(
    '--agent <name>',
    'of this agent (default: the one that asks)',
  );

  command(AGENTS, 'event TYPE [--data K=V]…', 'tell the run that something happened', EVENT_NOTES)
    .argument('<type>')
    .option('--data <k=v>', 'what goes with it; may be repeated');

  command(AGENTS, 'await-event TYPE [--filter K=V]… [--timeout D]', 'wait for an event', AWAIT_EVENT_NOTES)
    .argument('<type>')
    .option('--filter <k=v>', 'only one whose data has this; agent and workflow ask who sent it. May be repeated')
    .option('--timeout <d>', 'how long at most: 30s, 5m, 1h30m')
    .option('--json', 'print the event as one JSON object');

  command(AGENTS, 'step-status STEP [--is S | --is-not S]', 'how a step stands', STEP_STATUS_NOTES)
    .argument('<step>')
    .option('--is <s>', 'exit with 0 if the step has this status, else with 1')
    .option('--is-not <s>', 'exit with 0 if the step has another status, else with 1');

  command(
    AGENTS,
    'await-approval GATE [--timeout D] [--prompt TEXT]',
    'wait until a person has decided',
    AWAIT_APPROVAL_NOTES,
  )
    .argument('<gate>')
    .option('--timeout <d>', 'how long at most: 30s, 5m, 24h')
    .option('--prompt <text>', 'what is asked; meow gates shows it');

  command(AGENTS, 'mcp [FLAGS]', 'the same as tools, for an agent that speaks MCP', MCP_NOTES)
    .option('--agent <name>', 'which agent it speaks for (default: MEOW_AGENT)')
    .option('--workflow <id>', 'in which run (default: MEOW_WORKFLOW)')
    .option('--socket <path>', 'of the run (default: MEOW_ORCH_SOCK)')
    .option('--inbox <folder>', 'of the run (default: MEOW_INBOX)');
}

const GATES_NOTES = `
Examples:
  meow gates
  meow gates --workflow wf-ab12cd34 --json
`;

const DECIDE_NOTES = `
The first decision stands: the same again does no harm, another is refused (exit status 2). A gate that
nobody has asked for yet may be decided all the same; that is kept until somebody does. So is a
decision about a run that no engine works on: it is applied when the run is resumed.

Examples:
  meow approve wf-ab12cd34 review --notes "looks good"
  meow reject wf-ab12cd34 review --reason "needs tests"
`;

const ANSWER_NOTES = `
Without GATE the one is meant that is open; where there are more, GATE must say which.

Examples:
  meow answer wf-ab12cd34 "use the staging database"
  meow answer wf-ab12cd34 which-database staging
`;

const DONE_NOTES = `
Exit status: 0 accepted, 1 refused (what is wrong is told, and the step goes on), 2 there is no run to
report to. Without an engine it waits until there is one again.

Examples:
  meow done
  meow done --output summary="all tests pass" --output count=3
  meow done --json '{"files": ["a.ts", "b.ts"]}' --notes "one test is slow"
`;

const PRIME_NOTES = `
Prints the agent's task again where it has stopped in the middle of it, and nothing where it is idle,
has just reported, or talks with a person. Made for a hook that is called when an agent stops: where
there is no run it prints nothing, and exits with 0. With --format hook it prints what such a hook
must print for the agent to go on.
`;

const SESSION_NOTES = `
Examples:
  meow session-id
  meow session-id --agent worker-1
`;

const EVENT_NOTES = `
Does not wait. Made for hooks: outside of a run it does nothing, and exits with 0.

Examples:
  meow event progress --data percent=50
  meow event tool-completed --data tool=Write --data file=src/main.ts
`;

const AWAIT_EVENT_NOTES = `
A step gets the first event that matches of those since it became ready, and each only once. Prints
its data, one name=value a line. Exit status: 0 received, 1 not in time, or the run is ending.

Examples:
  meow await-event agent-stopped --timeout 30s
  meow await-event tool-completed --filter tool=Write --filter agent=worker-1
`;

const STEP_STATUS_NOTES = `
A status is pending, running, completing, done, failed or skipped. STEP is looked for beside the step
that asks, then further out. Exit status 2 where there is no such step.

Examples:
  meow step-status build
  meow step-status main-task --is-not done
`;

const AWAIT_APPROVAL_NOTES = `
Prints the notes, the reason or the answer. Exit status: 0 approved, 1 rejected, 2 an error, or the run
is ending, 3 timed out.

Examples:
  meow await-approval review
  meow await-approval review --timeout 24h --prompt "Is the plan good enough to begin?"
`;

const MCP_NOTES = `
A server of the Model Context Protocol on stdin and stdout, with the tools done, event, ask and status.
The adapters of agents that speak it configure it. Outside of a run it starts, and every tool says so.

Example:
  meow mcp --agent worker --workflow wf-ab12cd34 --inbox /project/.meow/workflows/wf-ab12cd34/inbox
`;
