// The help of the commands, and everything about the commands for agents except what they do: agent.ts must start fast, so
// it reads their flags without commander.

export interface AgentCommandHelp {
  readonly usage: string;
  /** The name of its argument, if it has one. */
  readonly argument?: string;
  readonly description: string;
  readonly notes: string;
  /** Flags with their descriptions; one without a description is not shown. */
  readonly options: Readonly<Record<string, string>>;
}

/** The commands that steps and agents of a run call. */
export const AGENT_HELP = {
  done: {
    usage: 'done [--output K=V]… [--json JSON] [--notes TEXT]',
    description: 'report a step as done',
    options: {
      '--output <k=v>': 'an output of the step; may be repeated',
      '--json <json>': 'outputs as one JSON object; also --output-json',
      '--output-json <json>': '',
      '--notes <text>': 'stored with the step and shown',
    },
    notes: `
Exit code: 0 accepted, 1 refused (it prints why, and the step continues), 2 no run to report to. If the
run has no engine, the command waits for one.

Examples:
  meow done
  meow done --output summary="all tests pass" --output count=3
  meow done --json '{"files": ["a.ts", "b.ts"]}' --notes "one test is slow"
`,
  },
  prime: {
    usage: 'prime [--format prompt|json|hook]',
    description: "print the agent's current prompt",
    options: { '--format <f>': 'prompt, json or hook (default: prompt)' },
    notes: `
Prints the prompt again if the agent has stopped before it was done. Prints nothing if the agent is idle,
has just reported, or talks with a person. Made for a hook that runs when an agent stops: outside of a
run it prints nothing and exits with 0. With --format hook it prints the reply that makes the agent
continue.
`,
  },
  'session-id': {
    usage: 'session-id [--agent NAME]',
    description: "print the id of an agent's session",
    options: { '--agent <name>': 'default: the calling agent' },
    notes: `
Examples:
  meow session-id
  meow session-id --agent worker-1
`,
  },
  event: {
    usage: 'event TYPE [--data K=V]…',
    argument: 'TYPE',
    description: 'emit an event',
    options: { '--data <k=v>': 'data of the event; may be repeated' },
    notes: `
Does not wait. Made for hooks: outside of a run it does nothing and exits with 0.

Examples:
  meow event progress --data percent=50
  meow event tool-completed --data tool=Write --data file=src/main.ts
`,
  },
  'await-event': {
    usage: 'await-event TYPE [--filter K=V]… [--timeout D]',
    argument: 'TYPE',
    description: 'wait for an event',
    options: {
      '--filter <k=v>': 'match data of the event, or its sender with agent and workflow; may be repeated',
      '--timeout <d>': 'maximum wait: 30s, 5m, 1h30m',
      '--json': 'print the event as one JSON object',
    },
    notes: `
A step receives the first matching event since it became ready, and each event only once. Prints the
data, one name=value per line. Exit code: 0 received, 1 timed out, or the run is ending.

Examples:
  meow await-event agent-stopped --timeout 30s
  meow await-event tool-completed --filter tool=Write --filter agent=worker-1
`,
  },
  'step-status': {
    usage: 'step-status STEP [--is S | --is-not S]',
    argument: 'STEP',
    description: "print a step's status",
    options: {
      '--is <s>': 'exit with 0 if the step has this status, otherwise with 1',
      '--is-not <s>': 'exit with 0 if the step has another status, otherwise with 1',
    },
    notes: `
A status is pending, running, completing, done, failed or skipped. STEP is searched next to the calling
step, then in the enclosing scopes. Exit code: 2 if there is no such step.

Examples:
  meow step-status build
  meow step-status main-task --is-not done
`,
  },
  'await-approval': {
    usage: 'await-approval GATE [--timeout D] [--prompt TEXT] [--approver NAME]…',
    argument: 'GATE',
    description: 'open a gate and wait for the decision',
    options: {
      '--timeout <d>': 'maximum wait: 30s, 5m, 24h',
      '--prompt <text>': 'the question; meow gates shows it',
      '--approver <name>': 'only NAME, agent:NAME or ssh:NAME may decide; may be repeated',
    },
    notes: `
Prints the notes, the reason or the answer. Exit code: 0 approved, 1 rejected, 2 an error or the run is
ending, 3 timed out.

Any person may decide. With --approver, only those that it names: a person, an agent of the run
(agent:NAME), or somebody who signs with an SSH key (ssh:NAME).

Examples:
  meow await-approval review
  meow await-approval review --timeout 24h --prompt "Is the plan good enough to begin?"
  meow await-approval release --approver ada --approver grace
`,
  },
  mcp: {
    usage: 'mcp [FLAGS]',
    description: 'serve these commands as MCP tools',
    options: {
      '--agent <name>': 'the agent (default: MEOW_AGENT)',
      '--workflow <id>': 'the run (default: MEOW_WORKFLOW)',
      '--socket <path>': 'socket of the run (default: MEOW_ORCH_SOCK)',
      '--inbox <folder>': 'inbox of the run (default: MEOW_INBOX)',
    },
    notes: `
A Model Context Protocol server on stdin and stdout, with the tools done, event, ask and status. Adapters
configure it for agents that support MCP. Works only inside a run, or with flags that name one.

Example:
  meow mcp --agent worker --workflow wf-ab12cd34 --inbox /project/.meow/workflows/wf-ab12cd34/inbox
`,
  },
} satisfies Readonly<Record<string, AgentCommandHelp>>;

export const PROGRAM_NOTES = `
Start here:
  meow init                       create a .meow folder with an example
  meow run hello                  run the example
  meow help run                   show help for a command

Runs are stored in .meow/workflows/ of the working directory, or of the nearest parent folder that has
a .meow. Any unique prefix of an id works.

Exit code: 0 done, 1 failed or invalid workflow, 2 wrong usage, 3 paused, 70 a bug in meow,
130 or 143 stopped by a signal.
`;

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

export const NOTES = {
  run: `
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
`,
  resume: `
Finished steps do not run again. If a command is still running, meow waits for it. If it finished while
there was no engine, its result counts. Only a lost command runs again, as a new attempt. Failed steps
are retried unless you pass --only-pending. Limits are those of the flags and the configuration of now.
A run that is done cannot be resumed.

Examples:
  meow resume wf-ab12cd34
  meow resume wf-ab12cd34 --only-pending
  meow resume wf-ab12cd34 --max-steps 20000
  meow resume wf-ab12cd34 --detach
  meow resume wf-ab12cd34 --reload
`,
  fork: `
Keeps each finished step that asks for the same as before and depends only on kept steps. Runs the
others. The original run is not changed. What a fork would keep: meow plan PATH --since RUN

Examples:
  meow fork wf-ab12cd34 --source deploy.meow.toml
  meow fork wf-ab12cd34 --source deploy.meow.toml --dry-run
  meow fork wf-ab12cd34 --from build
`,
  stop: `
Terminates the commands of the run, kills those that do not exit, and then runs the workflow's
cleanup_on_stop. Returns when the run has ended. Works for runs in other terminals, for detached runs,
and for a run whose engine has crashed.

Examples:
  meow stop wf-ab12cd34
  meow stop wf-ab12cd34 --force
`,
  status: `
Examples:
  meow status
  meow status wf-ab12cd34 --watch
  meow status wf-ab12cd34 --json | jq .counts
`,
  list: `
Examples:
  meow list
  meow list --status failed
`,
  show: `
Examples:
  meow show wf-ab12cd34
  meow show wf-ab12cd34 build
  meow show wf-ab12cd34 --steps
`,
  trace: `
Examples:
  meow trace wf-ab12cd34
  meow trace wf-ab12cd34 --follow
  meow trace wf-ab12cd34 --json | jq 'select(.kind == "step-failed")'
`,
  agents: `
Lists the agents of unfinished runs, and agents that are still running although their run has ended.
With --run: all agents of one run. An agent is starting, active (it works on a step), idle, stopped
(it was ended, or has no terminal and its run has ended) or gone.

Examples:
  meow agents
  meow agents --run wf-ab12cd34 --json
`,
  attach: `
Agents with a terminal run in tmux, each in its own session. Press C-b d to detach. The agent receives
what you type as if meow had typed it.

Examples:
  meow attach wf-ab12cd34 worker
  meow attach wf-ab12cd34 worker --read-only
`,
  logs: `
The step's stdout goes to stdout, its stderr to stderr. Without STEP: the failed step, else a running one, else
the last. Of an agent without a terminal its messages are shown; on a terminal, control characters are shown as
text. --raw prints the bytes.

Examples:
  meow logs wf-ab12cd34 build
  meow logs wf-ab12cd34 build --attempt 1
  meow logs wf-ab12cd34 build --follow
`,
  why: `
Examples:
  meow why wf-ab12cd34 deploy
`,
  diff: `
Compares steps by their ids: statuses, outputs, the order in which they ended, time and cost. Exit code: 0
whether the runs differ or not.

Examples:
  meow diff wf-ab12cd34 wf-ef56gh78
`,
  init: `
Writes .meow/config.toml and the chosen example as .meow/templates/NAME.meow.toml, with comments. Every
example runs without an account: its agents are simulated. Writes the schemas for editors to
.meow/schemas/. Other existing files are not changed.

Examples:
  meow init && meow run hello
  meow init --template work-loop && meow run work-loop
`,
  validate: `
Prints every problem as PATH:LINE:COLUMN: error|warning CODE: message, with the line and a hint.
Exit code: 1 if there is an error, 2 if a file is missing and the others have no error, otherwise 0.

Examples:
  meow validate deploy.meow.toml
  meow validate .meow/templates/*.toml --json
`,
  schema: `
Prints one self-contained JSON Schema (draft 7). Without a name: the list of names. Unknown keys are refused,
and each executor and opcode has its own keys. An unknown name is exit code 2.

Examples:
  meow schema meow > meow.schema.json
`,
  graph: `
For a file: the steps as written. For a run: the steps with their current status.

Examples:
  meow graph deploy.meow.toml
  meow graph deploy.meow.toml --format svg > deploy.svg
  meow graph wf-ab12cd34 --format mermaid
`,
  test: `
The tests of deploy.meow.toml are in deploy.test.toml beside it. Without a path, all *.test.toml files
below this folder are run. Agents are simulated, commands are answered by rules, and time is virtual:
nothing is paid, and nothing of yours is changed.

Exit codes: 0 all passed, 1 a test failed or there is none, 2 a test file is wrong.

Examples:
  meow test
  meow test examples -t rejected
  meow test deploy.test.toml --crash
`,

  prove: `
Explores every run of the workflow with the real kernel, without running anything. Prints every ending with
the shortest way to it, steps that no run reaches, waits that nothing ends, loops without a bound, the worst
case, and whether the claims of the test file hold: [[claim]] tables in NAME.test.toml beside the workflow.
A broken claim comes with a counterexample. Ctrl-C prints what was found so far.

Exit code: 0 everything explored, all claims hold and nothing hangs; 1 a claim is broken, a run can hang, or
the workflow is invalid; 2 wrong usage, a missing variable or a wrong test file; 3 a bound was reached first.

Examples:
  meow prove deploy.meow.toml
  meow prove deploy.meow.toml --var agent=worker --price sim=0.40
  meow prove review --json | jq '.endings[] | {status, step}'
`,
  adapter: `
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
`,
  notify: `
Sends a message of the kind "test" to every channel under [notify] in .meow/config.toml: webhook, command,
desktop. It is sent at once, and not repeated.

Examples:
  meow notify test
  meow notify test --json | jq '.[] | select(.accepted | not)'

Exit code: 0 every channel accepted it, 1 one did not, or the configuration is invalid, 2 there is no channel.
`,
  completion: `
The script knows commands and flags, and runs, steps, open gates, agents and workflows of the project. It
starts no program of meow.

Examples:
  meow completion bash > ~/.local/share/bash-completion/completions/meow
  meow completion zsh > "\${fpath[1]}/_meow"
  meow completion fish > ~/.config/fish/completions/meow.fish
`,
  doctor: `
Checks what meow needs, and the program of every adapter: whether it is installed, its version, whether
you are logged in, and whether it can start unattended. Prints one line per check, with a fix. Starts no
agent and does not use the network.

It also names what ended runs have left: processes, terminals, sockets, locks, worktrees, unfinished files.

Exit code: 0 nothing required is missing and nothing is left, otherwise 1.

Examples:
  meow doctor
  meow doctor --json | jq '.checks[] | select(.status != "ok")'
  meow doctor --fix
`,
  gc: `
A Conductor run has its own worktree and branch, and a snapshot from before each step. Once the run has
ended, gc removes them unless work would be lost: uncommitted changes, or commits on no other branch.

With --older-than, --keep, --status or --logs-only it removes whole runs of any language, or their logs. Only
runs that are over are removed, and the newest run of each schedule stays.

Examples:
  meow gc
  meow gc --dry-run
  meow gc wf-ab12cd34 --force
  meow gc --older-than 30d --keep 100
`,
  export: `
The archive has the journal, the state file and the logs, with secrets masked. A run that an engine works
on is refused.

Examples:
  meow export wf-ab12cd34 -o run.tar.gz
  meow export wf-ab12cd34 --otlp
`,
  import: `
An imported run can be read and forked, but not resumed.

Examples:
  meow import run.tar.gz
`,
  report: `
One HTML file without scripts: steps, costs and the ends of logs, with secrets masked.

Examples:
  meow report wf-ab12cd34 -o run.html
`,
  gates: `
Examples:
  meow gates
  meow gates --run wf-ab12cd34 --json
`,
  approve: DECIDE_NOTES,
  reject: DECIDE_NOTES,
  answer: `
GATE may be left out if only one gate is open.

Examples:
  meow answer wf-ab12cd34 "use the staging database"
  meow answer wf-ab12cd34 which-database staging
`,
};
