// Permission requests of an agent for a tool call: the dialog that a person sees, and the option that an adapter's rule or a
// person's decision selects.
//
// No two requests of an agent have the same text, so a decision about one is never applied to another.

import { resolve } from 'node:path';

import type {
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
  ToolCallUpdate,
} from '@agentclientprotocol/sdk/unstable';

import { isJsonMap, type Json } from '../../../base/json.ts';
import type { DialogVerdict, Note } from '../../../engine/ports.ts';
import type { Dialog } from '../../../ir/effect.ts';
import { isWithin } from '../../../sys/files.ts';
import type { RpcRequest, Unchecked } from './rpc.ts';

/** Name of the run's own MCP server. Its tools need no permission. */
export const OWN_SERVER = 'meow';

export function isOwnTool({ params }: RpcRequest): boolean {
  const { title, kind } = toolCallIn(params);
  // A shell command may have any title, but is of another kind.
  return kind === 'other' && typeof title === 'string' && new RegExp(`^mcp__${OWN_SERVER}__\\w+$`).test(title);
}

/** Whether all that the tool call does is to change files in the folder, as far as it says. */
export function changesFilesIn(folder: string, { params }: RpcRequest): boolean {
  const { kind, locations } = toolCallIn(params);
  const places = Array.isArray(locations) ? (locations as readonly Json[]) : [];
  const isInside = (place: Json): boolean => {
    const path = isJsonMap(place) && typeof place['path'] === 'string' ? resolve(folder, place['path']) : null;
    return path !== null && (path === folder || isWithin(folder, path));
  };
  return kind === 'edit' && places.length > 0 && places.every(isInside);
}

export function permissionDialog({ id, params }: RpcRequest): Dialog {
  const { title, kind, rawInput } = toolCallIn(params);
  const options = optionsIn(params).map(({ name, optionId }) => (name === optionId ? name : `${name} (${optionId})`));
  const lines = [
    shortened(typeof title === 'string' && title !== '' ? title : 'a tool without a title'),
    ...(typeof kind === 'string' ? [`kind: ${kind}`] : []),
    ...(rawInput === undefined ? [] : [`input: ${shortened(JSON.stringify(rawInput))}`]),
    `options: ${options.join(', ')}`,
    `request: ${JSON.stringify(id)}`,
  ];
  return { name: 'permission', text: lines.join('\n') };
}

function toolCallIn({ toolCall }: Unchecked<RequestPermissionRequest>): Unchecked<ToolCallUpdate> {
  return isJsonMap(toolCall) ? toolCall : {};
}

/** The tool is not used. */
export const CANCELLED: RequestPermissionResponse = { outcome: { outcome: 'cancelled' } };

/** Prefers an option for this call to one for all calls, and cancels if there is neither. */
export function byRule({ params }: RpcRequest, rule: 'allow' | 'deny'): RequestPermissionResponse {
  const options = optionsIn(params);
  const word = rule === 'allow' ? 'allow' : 'reject';
  const offered = ['once', 'always'].flatMap((how) => options.find(({ kind }) => kind === `${word}_${how}`) ?? []);
  return offered[0] === undefined ? CANCELLED : selected(offered[0]);
}

function selected({ optionId }: Option): RequestPermissionResponse {
  return { outcome: { outcome: 'selected', optionId } };
}

/** An answer that is the id or the name of an option selects it; any other answer counts as yes or no only. */
export function byVerdict(request: RpcRequest, { approved, answer }: DialogVerdict): RequestPermissionResponse {
  const words = answer?.trim().toLowerCase();
  const named = optionsIn(request.params).find(({ optionId, name }) =>
    [optionId, name].some((text) => text.trim().toLowerCase() === words),
  );
  return named === undefined ? byRule(request, approved ? 'allow' : 'deny') : selected(named);
}

/** An agent may offer options of a kind that is unknown here. */
type Option = Readonly<Pick<PermissionOption, 'optionId' | 'name'>> & { readonly kind: string };

function optionsIn({ options }: Unchecked<RequestPermissionRequest>): readonly Option[] {
  return (Array.isArray(options) ? (options as readonly Json[]) : []).flatMap((option) => {
    if (!isJsonMap(option)) return [];
    const { optionId, name, kind }: Unchecked<PermissionOption> = option;
    if (typeof optionId !== 'string') return [];
    return [{ optionId, name: typeof name === 'string' ? name : optionId, kind: typeof kind === 'string' ? kind : '' }];
  });
}

const SHOWN_MAX = 2_000;

function shortened(text: string): string {
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}

/** A permission request that a person must decide. */
export interface Question {
  readonly key: string;
  readonly request: RpcRequest;
  readonly dialog: Dialog;
}

/**
 * Questions of an agent to people, one at a time: shown to the step that waits for the agent, and answered by a
 * decision about exactly that question.
 */
export class Dialogs {
  readonly #first: () => Question | null;
  readonly #answer: (question: Question, verdict: DialogVerdict) => void;
  readonly #listeners = new Set<Note>();
  #shown: { readonly key: string; readonly listener: Note } | null = null;
  #verdict: DialogVerdict | null = null;

  /** `first`: the next question to answer. */
  constructor(first: () => Question | null, answer: (question: Question, verdict: DialogVerdict) => void) {
    this.#first = first;
    this.#answer = answer;
  }

  /** Only the first listener is notified. Returns a function that stops listening. */
  listen(note: Note): () => void {
    // Two listeners may be the same function.
    const listener: Note = (progress) => note(progress);
    this.#listeners.add(listener);
    this.update();
    return () => {
      this.#listeners.delete(listener);
      this.update();
    };
  }

  /** After a restart, a decision may arrive before the question does. */
  decide(verdict: DialogVerdict): void {
    this.#verdict = verdict;
    this.update();
  }

  /** To be called when the open question may have changed. */
  update(): void {
    const question = this.#first();
    const [listener] = this.#listeners;
    const shown = this.#shown;
    if (shown !== null && (shown.key !== question?.key || shown.listener !== listener)) {
      this.#shown = null;
      if (this.#listeners.has(shown.listener)) void shown.listener({ dialog: null });
    }
    if (question === null) return;
    if (this.#shown === null && listener !== undefined) {
      this.#shown = { key: question.key, listener };
      void listener({ dialog: question.dialog });
    }
    const { name, text } = question.dialog;
    if (this.#verdict?.dialog.name === name && this.#verdict.dialog.text === text)
      this.#answer(question, this.#verdict);
  }
}
