// Raymond workflows: the cost of a transition besides the agent's own program, the memory of a long run and of many
// workers, and the cost of a single file with all states.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench, Figure, Measurement } from './measure.ts';
import {
  atMost,
  count,
  duration,
  environment,
  figure,
  interleaveWarm,
  makeProject,
  median,
  MEOW,
  ratios,
  timeProcess,
} from './measure.ts';
import { peakOf } from './peak.ts';
import { inodesOf } from './step-files.ts';

const GOTOS = 1_000;
const MORE_GOTOS = 4_000;
const FORKS = 1_000;
const STATES = 1_000;
const AT_ONCE = 8;

export const raymond: Measurement = {
  name: 'raymond',
  method:
    `A prompt that goes to itself ${count(GOTOS)} times, in one session, with an agent that is a few lines of sh: the cost of a ` +
    'transition, without that of starting the same program with the same prompt from a loop in Node. The peak ' +
    `memory of such a run with ${count(MORE_GOTOS)} transitions, against one with ${count(GOTOS)}; and of a run with ${count(FORKS)} workers, ` +
    `${AT_ONCE} at once. A path through ${count(STATES)} states, all in one file, against a folder of as many. Whole processes, ` +
    'including start and exit. Memory with one round, files with a third of the rounds. ' +
    `Then the adapter of Claude Code with a program \`claude\` that is a few lines of sh: ${count(GOTOS)} gotos, and ${count(FORKS)} workers ` +
    'that one script forks, against a loop in bash that starts the same program as often with the same arguments; and the peak memory of both, and the files and folders that they leave, a turn.',
  async measure(bench) {
    return [
      await transitions(bench),
      flatMemory(bench),
      forks(bench),
      await oneFile(bench),
      ...(await withClaude(bench)),
    ];
  },
};

/** With the adapter of Claude Code, which has hooks, settings and an MCP configuration. */
async function withClaude(bench: Bench): Promise<readonly Figure[]> {
  const project = makeRaymond(bench, 'claude', 1);
  const more = { PATH: `${project}/bin:${environment(project)['PATH']}` };
  mkdirSync(join(project, 'bin'));
  writeFileSync(join(project, 'bin', 'claude'), claudeText(GOTOS + 1), { mode: 0o755 });
  writeForks(project);
  const folder = join(project, 'settings');
  const args = `-p --output-format stream-json --verbose --permission-mode bypassPermissions --mcp-config ${folder}/mcp.json --allowedTools 'mcp__meow__*' 'Bash(meow *)' --settings ${folder}/settings.json --resume x`;
  writeFileSync(join(project, 'prompt'), PROMPT);
  const loop = `for ((n = 0; n < ${GOTOS}; n++)); do claude ${args} <prompt; done`;
  const runs = { gotos: claudeArgs('loop'), forks: [...claudeArgs('forks'), '--max-agents', String(AT_ONCE)] };
  const samples = await interleaveWarm(bench.rounds, {
    gotos: () => timeProcess(MEOW, runs.gotos, project, more),
    forks: () => timeProcess(MEOW, runs.forks, project, more),
    bash: () => timeProcess('bash', ['-c', loop], project, more),
  });
  const row = (side: 'gotos' | 'forks', target: number): Figure =>
    figure({
      what: `${count(GOTOS)} ${side} with Claude Code's adapter, against a bash loop that starts the program`,
      measured: duration(median(samples[side])),
      against: duration(median(samples.bash)),
      values: ratios(samples[side], samples.bash),
      unit: '×',
      target: atMost(target),
      samples: { meow: samples[side], bash: samples.bash },
    });
  const left = (side: 'gotos' | 'forks'): readonly Figure[] => {
    const peak = peakOf(bench, [MEOW, ...runs[side], '--id', side], project, more);
    const run = join(project, '.meow/workflows', side);
    const inodes = inodesOf(run, { what: `a turn with Claude Code's adapter, ${side}`, steps: GOTOS, target: 4.1 });
    const memory = figure({
      what: `peak memory: ${count(GOTOS)} ${side} with Claude Code's adapter`,
      measured: `${count(peak)} MB`,
      against: '',
      values: [peak],
      unit: 'MB',
      target: atMost(90),
      samples: { peakMb: [peak] },
    });
    return [memory, inodes];
  };
  return [row('gotos', 1.6), row('forks', 2), ...left('gotos'), ...left('forks')];
}

function claudeArgs(path: string): readonly string[] {
  return ['run', path, '--adapter', 'claude', '--max-transitions', '100000'];
}

/** Speaks as Claude Code does; otherwise like `agentText`. */
function claudeText(visits: number): string {
  return `#!/bin/sh
read -r prompt
while [ $# -gt 0 ]; do case $1 in --session-id | --resume) session=$2 ;; esac; shift; done
printf '{"type":"system","subtype":"init","session_id":"%s"}\\n' "$session"
rest=\${prompt%</goto>*}
case $MEOW_STEP:$prompt in
  *.${visits}.* | *'<result>'*) tag='<result>end</result>' ;;
  *) tag="<goto>\${rest##*>}</goto>" ;;
esac
printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","session_id":"%s","total_cost_usd":0.01,' "$tag" "$session"
printf '"usage":{"input_tokens":1,"output_tokens":1}}\\n'
`;
}

async function transitions(bench: Bench): Promise<Figure> {
  const project = makeRaymond(bench, 'transitions', GOTOS + 1);
  const loop = `
    const { spawn } = require('node:child_process');
    let left = ${GOTOS};
    const next = () => {
      if (left-- === 0) return;
      const child = spawn('sh', [${JSON.stringify(agentIn(project))}, 'resume', 'x'], { stdio: ['pipe', 'ignore', 'ignore'] });
      child.stdin.end(${JSON.stringify(PROMPT)});
      child.once('exit', next);
    };
    next();`;
  const samples = await interleaveWarm(bench.rounds, {
    meow: () => timeRun(project, 'loop'),
    node: () => timeProcess('node', ['-e', loop], project),
  });
  const over = samples.meow.map((ms, round) => (ms - (samples.node[round] ?? Number.NaN)) / GOTOS);
  return figure({
    what: `a transition, over the bare start of the agent's program: ${count(GOTOS)} gotos`,
    measured: `${duration(median(samples.meow) / GOTOS)} a transition`,
    against: `${duration(median(samples.node) / GOTOS)} a start`,
    values: over,
    unit: 'ms',
    target: atMost(1.5),
    samples,
  });
}

function flatMemory(bench: Bench): Figure {
  const peak = (gotos: number): number =>
    peakOf(bench, [MEOW, ...runArgs('loop')], makeRaymond(bench, `gotos-${gotos}`, gotos + 1));
  const [few, many] = [peak(GOTOS), peak(MORE_GOTOS)];
  return figure({
    what: `peak memory: ${count(MORE_GOTOS)} gotos, against ${count(GOTOS)}`,
    measured: `${count(many)} MB`,
    against: `${count(few)} MB`,
    values: [many / few],
    unit: '×',
    target: atMost(1.5),
    samples: { manyMb: [many], fewMb: [few] },
  });
}

function forks(bench: Bench): Figure {
  const project = makeRaymond(bench, 'forks', 1);
  writeForks(project);
  const peak = peakOf(bench, [MEOW, ...runArgs('forks'), '--max-agents', String(AT_ONCE)], project);
  return figure({
    what: `peak memory: ${count(FORKS)} workers, ${AT_ONCE} at once`,
    measured: `${count(peak)} MB`,
    against: '',
    values: [peak],
    unit: 'MB',
    target: atMost(150),
    samples: { peakMb: [peak] },
  });
}

/** A script that forks workers, each with one prompt. */
function writeForks(project: string): void {
  const tags = Array.from({ length: FORKS }, (_, n) => `<fork next="END.md" n="${n}">END.md</fork>`);
  writeState(project, 'forks', 'START.sh', `cat <<'TAGS'\n${tags.join('\n')}\nTAGS\n`);
  writeState(project, 'forks', 'END.md', 'Worker {{agent_id}}. End with <result>end</result>');
}

async function oneFile(bench: Bench): Promise<Figure> {
  const project = makeRaymond(bench, 'states', STATES);
  const names = ['START', ...Array.from({ length: STATES - 2 }, (_, n) => `S${n + 1}`), 'END'];
  const texts = names.map((_, n) => `Go on: <goto>${names[n + 1] ?? 'END'}</goto>`);
  for (const [n, name] of names.entries()) writeState(project, 'folder', `${name}.md`, texts[n] ?? '');
  const states = names.map((name, n) => `  ${name}:\n    prompt: ${JSON.stringify(texts[n])}\n`);
  writeFileSync(join(project, 'file.yaml'), `states:\n${states.join('')}`);
  const samples = await interleaveWarm(Math.max(2, Math.round(bench.rounds / 3)), {
    file: () => timeRun(project, 'file.yaml'),
    folder: () => timeRun(project, 'folder'),
  });
  return figure({
    what: `a way through ${count(STATES)} states: in one file, against a folder`,
    measured: `${duration(median(samples.file) / STATES)} a transition`,
    against: `${duration(median(samples.folder) / STATES)} a transition`,
    values: ratios(samples.file, samples.folder),
    unit: '×',
    target: atMost(1.1),
    samples,
  });
}

const PROMPT = 'Go round once more, and end with <goto>START.md</goto>\n';

/** Goes to the state in the first line of its prompt; ends after this many visits. */
function agentText(visits: number): string {
  return `read -r prompt
printf '{"kind":"begun","session":"%s"}\\n' "$2"
rest=\${prompt%</goto>*}
case $MEOW_STEP:$prompt in
  *.${visits}.* | *'<result>'*) tag='<result>end</result>' ;;
  *) tag="<goto>\${rest##*>}</goto>" ;;
esac
printf '{"kind":"result","ok":true,"text":"%s","usd":0,"tokens":0}\\n' "$tag"
`;
}

function makeRaymond(bench: Bench, name: string, visits: number): string {
  const project = makeProject(bench, name);
  const agent = agentIn(project);
  writeFileSync(agent, agentText(visits));
  mkdirSync(join(project, '.meow/adapters/lines'), { recursive: true });
  writeFileSync(
    join(project, '.meow/adapters/lines/adapter.toml'),
    `[adapter]
name = "lines"
[headless]
command = "sh ${agent} fresh {{session_id}}"
resume = "sh ${agent} resume {{session_id}}"
fork = "sh ${agent} fork {{session_id}} {{new_session_id}}"
reader = "sim"
session_id = "chosen"
`,
  );
  const limits = '[limits]\nmax_total_steps = 100000\nmax_workflow_file_size = "500MB"\n';
  writeFileSync(join(project, '.meow/config.toml'), limits);
  writeState(project, 'loop', 'START.md', PROMPT);
  return project;
}

function agentIn(project: string): string {
  return join(project, 'agent.sh');
}

function writeState(project: string, folder: string, name: string, text: string): void {
  mkdirSync(join(project, folder), { recursive: true });
  writeFileSync(join(project, folder, name), text);
}

function timeRun(project: string, path: string): number {
  return timeProcess(MEOW, runArgs(path), project);
}

function runArgs(path: string): readonly string[] {
  return ['run', path, '--adapter', 'lines', '--max-transitions', '100000'];
}
