// What an editor offers, explains and renames in each language, in files that are open, saved, or both.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { EditorWorkspace } from '../../src/app/editor.ts';

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** The text of a buffer has its cursor at `¦`, if it has one. */
class Desk {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'meow-editor-')));
  readonly workspace: EditorWorkspace;
  readonly #buffers = new Map<string, string>();

  constructor(saved: Readonly<Record<string, string>>) {
    folders.push(this.folder);
    for (const [name, text] of Object.entries(saved)) {
      const path = this.path(name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
    this.workspace = new EditorWorkspace(this.folder, {
      textOf: (path) => this.#buffers.get(path) ?? null,
      paths: () => [...this.#buffers.keys()],
    });
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  type(name: string, text: string): number {
    this.#buffers.set(this.path(name), text.replace('¦', ''));
    this.workspace.changed(this.path(name));
    return text.indexOf('¦');
  }

  offers(name: string, text: string): readonly string[] {
    const offset = this.type(name, text);
    return this.workspace.suggest(this.path(name), offset)?.items.map(({ label }) => label) ?? [];
  }

  explains(name: string, text: string): string | null {
    const offset = this.type(name, text);
    const [found] = this.workspace.symbolAt(this.path(name), offset)?.definitions ?? [];
    return found?.about ?? this.workspace.keyAt(this.path(name), offset)?.about ?? null;
  }

  /** Where the symbol at the cursor is defined, as `FILE:TEXT`. */
  leadsTo(name: string, text: string): readonly string[] {
    const offset = this.type(name, text);
    const found = this.workspace.symbolAt(this.path(name), offset)?.definitions ?? [];
    return found.map(({ file, name: called }) => `${file.slice(this.folder.length + 1)}:${called}`);
  }

  /** Texts of all files that a renaming changes. */
  renamed(name: string, text: string, to: string): Readonly<Record<string, string>> {
    const offset = this.type(name, text);
    const path = this.path(name);
    const definitions = this.workspace.symbolAt(path, offset)?.definitions ?? [];
    const texts = new Map<string, string>();
    const edits = this.workspace.renamed(path, definitions, to).toSorted((a, b) => b.place.from - a.place.from);
    for (const { path: file, place, text: written } of edits) {
      const old = texts.get(file) ?? this.workspace.textOf(file) ?? '';
      texts.set(file, `${old.slice(0, place.from)}${written}${old.slice(place.to)}`);
    }
    return Object.fromEntries([...texts].map(([file, changed]) => [file.slice(this.folder.length + 1), changed]));
  }

  problems(name: string): readonly string[] {
    const workflow = this.workspace.workflowOf(this.path(name));
    return workflow === null ? [] : this.workspace.problemsOf(workflow).map(({ diagnostic }) => diagnostic.code);
  }
}

describe('MEOW', () => {
  const LOOP = `[[main.steps]]
id = "fix"
executor = "loop"
max_rounds = 3
until_output = "review.outputs.good"
inline = [
  { id = "review", executor = "agent", agent = "a", prompt = "{{previous.review.outputs.good}}", outputs = { good = { type = "boolean" } } },
]

[[main.steps]]
id = "end"
executor = "shell"
needs = ["fix"]
command = "echo {{fix.outputs.review.good}}"
`;

  test.each([
    ['keys of a table inside a step', '[[main.steps]]\nid = "a"\nretry = { ¦ }\n', ['max_attempts', 'backoff']],
    ['keys of a table with a header', '[[main.steps]]\nid = "a"\n[main.steps.retry]\nba¦\n', ['backoff']],
    ['keys of an inline step', '[[main.steps]]\nid = "a"\non_true = { inline = [{ id = "b", ¦', ['executor', 'needs']],
    ['keys of a variable', '[main.variables]\nname = { ¦ }\n', ['required', 'type']],
    ['keys of a workflow', '[main]\n¦\n', ['description', 'default_adapter']],
    ['words', '[[main.steps]]\nid = "a"\nretry = { backoff = "¦" }\n', ['linear', 'exponential']],
    ['true and false', '[[main.steps]]\nid = "a"\nexecutor = "foreach"\nparallel = ¦\n', ['true', 'false']],
    ['what follows an error', '[[main.steps]]\nid = "a"\non_error = "¦"\n', ['fail', 'continue', '.main']],
    ['adapters', '[[main.steps]]\nid = "a"\nexecutor = "spawn"\nadapter = "¦"\n', ['claude', 'sim']],
    ['steps of a need on a line of its own', '[[main.steps]]\nid = "b"\n[[main.steps]]\nneeds = [\n  ¦\n]\n', ['b']],
    ['steps of a round', LOOP.replace('"review.outputs.good"', '"¦"'), ['review']],
    ['outputs of a round', LOOP.replace('"review.outputs.good"', '"review.outputs.¦"'), ['good']],
    ['the round before', LOOP.replace('previous.review.outputs.good', '¦'), ['previous', 'round', 'fix']],
    ['steps of the round before', LOOP.replace('review.outputs.good}}', '¦'), ['review']],
    ['steps in the outputs of a loop', LOOP.replace('fix.outputs.review.good', 'fix.outputs.¦'), ['review', 'rounds']],
  ])('offers %s', (_, text, wanted) => {
    expect(new Desk({}).offers('w.meow.toml', text)).toEqual(expect.arrayContaining(wanted));
  });

  test('offers no key that is already written, and no words of another key', () => {
    const desk = new Desk({});
    expect(desk.offers('w.meow.toml', '[[main.steps]]\nid = "a"\nexecutor = "shell"\n¦\n')).not.toContain('id');
    expect(desk.offers('w.meow.toml', '[[main.steps]]\nid = "¦"\n')).toEqual([]);
  });

  test('explains an executor', () => {
    expect(new Desk({}).explains('w.meow.toml', '[[main.steps]]\nid = "a"\nexecutor = "fore¦ach"\n')).toBe(
      '`foreach`: Adds the steps of a template for each item of a list.',
    );
  });

  test('renames a step of a round with its uses in until_output, in the round before and in the outputs of the loop', () => {
    const text = LOOP.replace('id = "review"', 'id = "rev¦iew"');
    expect(new Desk({}).renamed('w.meow.toml', text, 'check')).toEqual({
      'w.meow.toml': LOOP.replaceAll('review', 'check'),
    });
  });

  test('renames a step with its uses in tests, claims and simulation scripts', () => {
    const workflow =
      '[[main.steps]]\nid = "build"\nexecutor = "shell"\ncommand = "true"\noutputs = { tag = "stdout" }\n';
    const tests = `[[test]]
name = "build"
run = ["build"]
[[test.command]]
step = "build"
stdout = "build"
[test.expect]
steps = { build = "done", "other" = "done" }
outputs = { "build.tag" = "build" }
order = ["build < end"]
never = ["build#2"]
error = { step = "build" }
prompts = [{ step = 'build', contains = "build" }]
[[test.engine]]
dies_after = "build"
[[claim]]
never = "end"
unless = "build"
[[claim]]
at_most = { visits = { build = 3 } }
`;
    const script = '[[on]]\nstep = "build"\ndo = [{ done = true }]\n';
    const desk = new Desk({ 'w.test.toml': tests, 'w.sim.toml': script, 'other.test.toml': tests });
    const renamed = desk.renamed('w.meow.toml', workflow.replace('"build"', '"bu¦ild"'), 'compile');
    expect(Object.keys(renamed).toSorted()).toEqual(['w.meow.toml', 'w.sim.toml', 'w.test.toml']);
    expect(renamed['w.sim.toml']).toBe(script.replace('build', 'compile'));
    const kept = /name = "build"|stdout = "build"|= "build" \}$|contains = "build"/;
    const expected = tests
      .replace('name = "build"', 'name = "BUILD"')
      .replace('stdout = "build"', 'stdout = "BUILD"')
      .replace('"build.tag" = "build"', '"build.tag" = "BUILD"')
      .replace('contains = "build"', 'contains = "BUILD"')
      .replaceAll('build', 'compile')
      .replaceAll('BUILD', 'build');
    expect(kept.test(tests)).toBe(true);
    expect(renamed['w.test.toml']).toBe(expected);
  });

  test('finds a step from its test, by a path with wildcards', () => {
    const desk = new Desk({
      'w.meow.toml': `[[main.steps]]
id = "each"
executor = "foreach"
items = [1]
template = ".part"
[[part.steps]]
id = "build"
executor = "shell"
command = "true"
`,
    });
    const text = '[test.expect]\nnever = ["each.*.bu¦ild"]\n';
    expect(desk.leadsTo('w.test.toml', text.replace('[test.expect]', '[[test]]\n[test.expect]'))).toEqual([
      'w.meow.toml:build',
    ]);
  });
});

describe('Raymond', () => {
  const START = '---\ndescription: Begins.\nallowed_tags: [goto, result]\n---\nSay <goto>REVIEW.md</goto>.\n';
  const REVIEW = 'Say <goto>START</goto> or <fork next="START" issue="7">WORKER.md</fork>.\n';
  const SAVED = { 'flow/START.md': START, 'flow/REVIEW.md': REVIEW, 'flow/WORKER.md': 'Say <result>x</result>.\n' };

  test.each([
    ['keys of front matter', START.replace('description: Begins.', '¦'), ['max_visits', 'adapter']],
    [
      'keys of a transition',
      START.replace('allowed_tags: [goto, result]', 'allowed_transitions:\n  - { ¦'),
      ['tag', 'target'],
    ],
    ['tags of a policy', START.replace('[goto, result]', '[¦]'), ['goto', 'call-workflow']],
    ['states of a policy', START.replace('allowed_tags', 'allowed_targets:\n  goto: [¦]\nx'), ['REVIEW.md']],
    ['states after then', START.replace('description: Begins.', 'then: ¦'), ['REVIEW.md']],
    ['adapters', START.replace('description: Begins.', 'adapter: ¦'), ['claude', 'sim']],
    ['tags', START.replace('<goto>REVIEW.md</goto>', '<¦'), ['goto', 'fork']],
    ['attributes of a tag', START.replace('<goto>REVIEW.md</goto>', '<call ¦'), ['return', 'input', 'model']],
    ['states as an attribute', START.replace('<goto>REVIEW.md</goto>', '<call return="¦"'), ['REVIEW.md']],
    ['placeholders and attributes of forks', START.replace('Say', '{{¦'), ['input', 'agent_id', 'issue']],
  ])('offers %s', (_, text, wanted) => {
    expect(new Desk(SAVED).offers('flow/START.md', text)).toEqual(expect.arrayContaining(wanted));
  });

  test('offers the keys of workflow.yaml and of a state in one file', () => {
    const desk = new Desk(SAVED);
    expect(desk.offers('flow/workflow.yaml', '¦')).toEqual(expect.arrayContaining(['default_budget', 'reset']));
    const single = 'states:\n  START:\n    prompt: Say <result>x</result>.\n    ¦\n';
    expect(desk.offers('one.yaml', single)).toEqual(expect.arrayContaining(['max_visits', 'sh']));
  });

  test('explains a state, a key and a tag', () => {
    const desk = new Desk(SAVED);
    expect(desk.explains('flow/REVIEW.md', REVIEW.replace('START<', 'ST¦ART<'))).toBe(
      'state `START.md`\n\nBegins.\n\nIts text names:\n\n- goto `REVIEW.md`',
    );
    expect(desk.explains('flow/START.md', START.replace('allowed_tags', 'allowed¦_tags'))).toBe(
      '`allowed_tags`: Tags that the answer may have; default any.',
    );
    expect(desk.explains('flow/START.md', START.replace('<goto', '<go¦to'))).toContain('in the same session');
  });

  test('a state that is not saved yet is a state', () => {
    const desk = new Desk(SAVED);
    desk.type('flow/START.md', START.replace('REVIEW.md', 'NEW.md'));
    expect(desk.problems('flow/START.md')).toContain('missing-target');
    desk.type('flow/NEW.md', 'Say <goto>REVIEW.md</goto>.\n');
    expect(desk.problems('flow/START.md')).not.toContain('missing-target');
  });

  test('a name in front matter that is half written is still a name', () => {
    const text = START.replace('allowed_tags: [goto, result]', 'then: REV¦IEW.md\nallowed_tags: [goto');
    expect(new Desk(SAVED).leadsTo('flow/START.md', text)).toEqual(['flow/REVIEW.md:REVIEW.md']);
  });

  test('renames a state with its uses in tests', () => {
    const tests = '[[test]]\nname = "REVIEW"\n[test.expect]\nvisits = { "main.*.REVIEW" = 1 }\nnever = ["REVIEW"]\n';
    const desk = new Desk({ ...SAVED, 'flow.test.toml': tests });
    const renamed = desk.renamed('flow/START.md', START.replace('REVIEW.md<', 'REV¦IEW.md<'), 'CHECK.md');
    expect(renamed).toEqual({
      'flow/START.md': START.replace('REVIEW', 'CHECK'),
      'flow.test.toml': tests.replace('.REVIEW', '.CHECK').replace('["REVIEW"]', '["CHECK"]'),
    });
  });
});

describe('Conductor', () => {
  const TEXT = `workflow_id: w
version: 1
description: Try it.
entry_step: work
defaults:
  policy: policy.mine.v1
steps:
  - id: work
    opcode: RUN_AGENT
    agent: sim
    prompt: task.mine.v1
    inputs: [check.validators]
    routes: { completed: check, error: STOP }
  - id: check
    opcode: RUN_VALIDATION
    run: [tests]
    routes:
      completed: ask
      error: { to: ./release.meow.toml, return: ask }
  - id: ask
    opcode: GATE
    gate: requires_approval
    approvers: ["agent:work"]
    routes: { gate_approved: STOP, gate_rejected: work }
`;
  const PROMPT = '---\nprompt_id: task.mine\nversion: 1\nrole: task\n---\nWork.\n';
  const SAVED = { 'prompts/task.mine.v1.md': PROMPT, 'release.meow.toml': '[[main.steps]]\nid = "a"\n' };

  test.each([
    ['opcodes', TEXT.replace('GATE', '¦'), ['RUN_AGENT', 'STOP']],
    ['keys of an opcode', TEXT.replace('gate: requires_approval', '¦'), ['gate', 'timeout']],
    ['keys of limits', TEXT.replace('prompt: task.mine.v1', 'limits:\n      ¦'), ['timeout']],
    ['keys of a witness in a route', TEXT.replace('completed: ask', 'completed: { to: ask, witness: { ¦'), ['command']],
    ['routes of an opcode', TEXT.replace('completed: ask', '¦'), ['completed', 'killed_idle']],
    ['targets of a route', TEXT.replace('completed: ask', 'completed: ¦'), ['work', 'ask', 'STOP']],
    ['targets of a route in braces', TEXT.replace('completed: check', 'completed: ¦'), ['check', 'STOP']],
    ['types of gates', TEXT.replace('requires_approval', '¦'), ['blocking_approval']],
    ['agents', TEXT.replace('agent: sim', 'agent: ¦'), ['claude', 'sim']],
    ['validators', TEXT.replace('[tests]', '[¦]'), ['tests', 'lint']],
    ['inputs', TEXT.replace('check.validators', '¦'), ['diff', 'check']],
    ['outputs of a step', TEXT.replace('check.validators', 'check.¦'), ['validators', 'report_summary']],
    ['inputs in a prompt', TEXT.replace('task.mine.v1', 'Work with {{¦'), ['check.validators', 'worktree']],
    ['keys of the workflow', `¦\n${TEXT.replace('version: 1\n', '')}`, ['version']],
  ])('offers %s', (_, text, wanted) => {
    expect(new Desk(SAVED).offers('w.yaml', text)).toEqual(expect.arrayContaining(wanted));
  });

  test('explains a step, an opcode and a key', () => {
    const desk = new Desk(SAVED);
    expect(desk.explains('w.yaml', TEXT.replace('gate_rejected: work', 'gate_rejected: w¦ork'))).toBe(
      'step `work` (RUN_AGENT)\n\nRuns one headless turn of an agent, in the worktree of the run.\n\n' +
        'Routes:\n\n- `completed` → `check`\n- `error` → `STOP`\n\n' +
        'Outputs: `result`, `changes`, `violations`, `policy`, `run_files`, `head`, `tree`, `witness`, `artifacts`',
    );
    expect(desk.explains('w.yaml', TEXT.replace('GATE', 'GA¦TE'))).toBe(
      '`GATE`: A decision that only people can make.',
    );
    expect(desk.explains('w.yaml', TEXT.replace('approvers', 'appro¦vers'))).toBe(
      '`approvers`: Who may decide; default any person.',
    );
  });

  test('finds prompts and other workflows', () => {
    const desk = new Desk(SAVED);
    expect(desk.leadsTo('w.yaml', TEXT.replace('task.mine', 'task.m¦ine'))).toEqual([
      'prompts/task.mine.v1.md:task.mine.v1.md',
    ]);
    expect(desk.leadsTo('w.yaml', TEXT.replace('release', 'rel¦ease'))).toEqual([
      'release.meow.toml:release.meow.toml',
    ]);
  });

  test('renames a step with its uses in routes, inputs, approvers, tests and claims', () => {
    const tests = `[[test]]
name = "check"
gate = [{ gate = "ask", decide = "approve" }]
[test.expect]
outcomes = { "check#1" = "error" }
visits = { "check#*" = "<= 2" }
[[claim]]
never = "check"
unless_gate = "ask"
`;
    const desk = new Desk({ ...SAVED, 'w.test.toml': tests });
    expect(desk.renamed('w.yaml', TEXT.replace('id: check', 'id: che¦ck'), 'verify')).toEqual({
      'w.yaml': TEXT.replaceAll('check', 'verify'),
      'w.test.toml': tests.replaceAll('check', 'verify').replace('name = "verify"', 'name = "check"'),
    });
    expect(desk.renamed('w.yaml', TEXT.replace('id: ask', 'id: a¦sk'), 'decide')['w.test.toml']).toBe(
      tests.replaceAll('"ask"', '"decide"'),
    );
  });
});
