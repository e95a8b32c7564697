// The form that starts a run: a field for each variable, and the command that does the same. The server parses the values as
// `meow run --var` does, and what it refuses is shown at the field.

import type { TargetedSubmitEvent } from 'preact';
import { useState } from 'preact/hooks';
import type { Json } from '../base/json.ts';
import type { Refusal, StartRequest, VariableDocument, WorkflowDocument } from '../web/protocol.ts';
import { runAddress } from './addresses.ts';
import { post } from './post.ts';
import { navigate } from './router.ts';
import { line } from './shown-text.ts';
import { Diagnostic } from './workflow-diagnostic.tsx';

export function StartForm({ of }: { readonly of: WorkflowDocument }) {
  const { project, path, workflow, variables } = of;
  const [values, setValues] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(variables.map((variable) => [variable.name, defaultText(variable)])),
  );
  const [usesSim, setSim] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [isSending, setSending] = useState(false);
  const title = workflow === null ? path : `${path}#${workflow}`;
  const given = givenValues(variables, values);
  const start = async (event: TargetedSubmitEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    if (isSending) return;
    setSending(true);
    const request: StartRequest = { project, path, workflow, variables: given, sim: usesSim };
    const result = await post('/do/start', request);
    setSending(false);
    setRefusal(result.ok ? null : result.refusal);
    if (result.ok && result.done.run !== undefined) navigate(runAddress(result.done.run));
  };
  return (
    <form class="form" aria-label={`Start ${line(title)}`} noValidate onSubmit={(event) => void start(event)}>
      <h2>Start a run</h2>
      {variables.map((variable) => (
        <Field
          key={variable.name}
          variable={variable}
          value={values[variable.name] ?? ''}
          problem={refusal?.fields?.[variable.name] ?? null}
          change={(value) => setValues({ ...values, [variable.name]: value })}
        />
      ))}
      <label class="check">
        <input type="checkbox" checked={usesSim} onChange={({ currentTarget }) => setSim(currentTarget.checked)} />
        Try with sim
        <small>simulated agents, which need no account and cost nothing</small>
      </label>
      {refusal !== null && <Refused refusal={refusal} />}
      <div class="l1">
        <button type="submit" class="b go" disabled={isSending}>
          {isSending ? 'Starting' : 'Start'}
        </button>
      </div>
      <pre class="command" tabIndex={0} aria-label="The same as a command">
        {commandOf(title, given, usesSim)}
      </pre>
    </form>
  );
}

interface FieldProps {
  readonly variable: VariableDocument;
  readonly value: string;
  readonly problem: string | null;
  readonly change: (value: string) => void;
}

function Field({ variable, value, problem, change }: FieldProps) {
  const { name, type, required, description } = variable;
  const id = `variable-${name}`;
  const common = {
    id,
    'aria-describedby': `${id}-note${problem === null ? '' : ` ${id}-problem`}`,
    'aria-invalid': problem === null ? undefined : true,
    'aria-required': required,
  } as const;
  return (
    <div class="field">
      <label for={id}>{line(name, 120)}</label>
      <small id={`${id}-note`}>
        {description !== null && `${line(description)} · `}
        {line(type, 60)}
        {required && ' · required'}
      </small>
      {type === 'boolean' || type === 'bool' ? (
        <select {...common} value={value} onChange={({ currentTarget }) => change(currentTarget.value)}>
          {['', 'true', 'false'].map((option) => (
            <option key={option} value={option}>
              {option}
            </option>
          ))}
        </select>
      ) : value.includes('\n') || type === 'json' ? (
        <textarea {...common} rows={4} value={value} onInput={({ currentTarget }) => change(currentTarget.value)} />
      ) : (
        <input
          {...common}
          type="text"
          autocomplete="off"
          spellcheck={false}
          value={value}
          onInput={({ currentTarget }) => change(currentTarget.value)}
        />
      )}
      {problem !== null && (
        <span class="err" id={`${id}-problem`}>
          {line(problem)}
        </span>
      )}
    </div>
  );
}

function Refused({ refusal: { message, cure, diagnostics = [] } }: { readonly refusal: Refusal }) {
  return (
    <div class="refused" role="alert">
      {line(message)}
      {cure !== null && <div class="dim">{line(cure)}</div>}
      {diagnostics.length > 0 && (
        <ul class="diagnostics">
          {diagnostics.map((diagnostic, index) => (
            <Diagnostic key={index} of={diagnostic} />
          ))}
        </ul>
      )}
    </div>
  );
}

function defaultText({ default: value }: VariableDocument): string {
  return value === null ? '' : textOf(value);
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** What differs from the defaults: an empty field of a variable that is not required leaves the variable out. */
function givenValues(
  variables: readonly VariableDocument[],
  values: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    variables.flatMap((variable) => {
      const value = values[variable.name] ?? '';
      const isDefault = value === defaultText(variable);
      return isDefault && (!variable.required || value === '') ? [] : [[variable.name, value]];
    }),
  );
}

function commandOf(title: string, given: Readonly<Record<string, string>>, usesSim: boolean): string {
  const flags = Object.entries(given).map(([name, value]) => `--var ${shellWord(`${name}=${value}`)}`);
  const all = [`meow run ${shellWord(title)} --detach`, ...flags, ...(usesSim ? ['--adapter sim'] : [])];
  return all.join(' \\\n  ');
}

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
