// Starts a run for a person who has filled in a form: checked first, so that each wrong value is named, and then started by
// `meow run --detach`.

import { UsageError } from '../base/errors.ts';
import { type Diagnostic, hasErrors } from '../base/source.ts';
import { Adapters } from './adapters.ts';
import { callCommand } from './call-command.ts';
import { InvalidWorkflow } from './errors.ts';
import { atItsFolder, referenceTo } from './list-workflows.ts';
import { prepareRun, randomId, WrongVariables } from './prepare-run.ts';
import { ownEnvironment, type Project } from './project.ts';
import { readSettings } from './sources.ts';

export interface StartForm {
  /** As in `ListedWorkflow`. */
  readonly path: string;
  readonly workflow: string | null;
  /** As typed. */
  readonly variables: Readonly<Record<string, string>>;
  /** With simulated agents. */
  readonly sim: boolean;
}

export type FormAnswer =
  | { readonly kind: 'started'; readonly id: string }
  | {
      readonly kind: 'refused';
      readonly message: string;
      readonly cure: string | null;
      /** What is wrong with a variable, by its name. */
      readonly fields: Readonly<Record<string, string>>;
      readonly diagnostics: readonly Diagnostic[];
    };

export async function startWorkflow(project: Project, form: StartForm): Promise<FormAnswer> {
  const refused = await refusalOf(project, form);
  if (refused !== null) return refused;
  const id = randomId();
  const args = ['run', referenceTo(form.path, form.workflow), '--detach', '--id', id, ...flagsOf(form)];
  const { code, stderr } = await callCommand({
    args,
    cwd: atItsFolder(project).cwd,
    environment: ownEnvironment(),
  });
  return code === 0 ? { kind: 'started', id } : { ...REFUSED, ...printedRefusal(stderr, `exit code ${code}`) };
}

/** The message of a command that failed, and its hint: `meow: MESSAGE`, and an indented line. */
export function printedRefusal(
  stderr: string,
  otherwise: string,
): { readonly message: string; readonly cure: string | null } {
  const lines = stderr.trimEnd().split('\n');
  const at = lines.findLastIndex((line) => line.startsWith('meow: '));
  const [first = otherwise, ...rest] = lines.slice(Math.max(0, at)).filter((line) => line.trim() !== '');
  const cure = rest.map((line) => line.trim()).join(' ');
  return { message: first.replace(/^meow: /, ''), cure: cure === '' ? null : cure };
}

const REFUSED = { kind: 'refused', fields: {}, diagnostics: [] } as const;

function flagsOf({ variables, sim }: StartForm): readonly string[] {
  const given = Object.entries(variables).flatMap(([name, value]) => ['--var', `${name}=${value}`]);
  return sim ? [...given, '--adapter', 'sim'] : given;
}

/** Null if the run may start. */
async function refusalOf(project: Project, { path, workflow, variables, sim }: StartForm): Promise<FormAnswer | null> {
  const inFolder = atItsFolder(project);
  const reference = referenceTo(path, workflow);
  try {
    const { diagnostics } = await prepareRun(inFolder, readSettings(inFolder), new Adapters(inFolder), {
      reference,
      var: Object.entries(variables).map(([name, value]) => `${name}=${value}`),
      ...(sim ? { adapter: 'sim' } : {}),
      dryRun: true,
      requiresSecrets: true,
      allowance: {},
    });
    if (!hasErrors(diagnostics)) return null;
    const fields = Object.fromEntries(diagnostics.flatMap((each) => missingVariable(each) ?? []));
    const others = diagnostics.filter((each) => missingVariable(each) === null);
    const message = hasErrors(others) ? `${reference} has mistakes` : 'a required value is missing';
    return { ...REFUSED, message, cure: null, fields, diagnostics: others };
  } catch (error) {
    if (error instanceof WrongVariables) {
      const fields = Object.fromEntries(error.problems.map(({ name, problem }) => [name, problem]));
      return { ...REFUSED, message: 'a value cannot be used', cure: error.hint, fields };
    }
    if (!(error instanceof UsageError || error instanceof InvalidWorkflow)) throw error;
    return { ...REFUSED, message: error.message, cure: error.hint };
  }
}

/** The variable that a diagnostic is about, with its message. */
function missingVariable({ code, message }: Diagnostic): readonly [readonly [name: string, message: string]] | null {
  const [, name] = /^the variable "([^"]+)"/.exec(message) ?? [];
  return code === 'missing-variable' && name !== undefined ? [[name, message]] : null;
}
