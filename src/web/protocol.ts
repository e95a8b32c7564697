// What the page and its server say to each other. Types, and the paths of both sides: the page imports this file.
//
//   web/1  The socket carries subscriptions, records and terminal keys. Actions are POSTs, documents are GETs.
//   web/2  The server computes no views of a run: it sends records, and the page folds them with the kernel.
//   web/3  After a reconnection the page asks for all records from the first missing one on.
//   web/4  A text of more than TEXT_BYTES in a decision is replaced by a reference (`TextReference`), and fetched when
//               it is viewed. Names and ids are never replaced, so the fold of both has the same steps.
//
// Documents. All are GETs with the cookie; a segment of a path is URL-encoded. RUN stands for `/data/run/PROJECT/RUN`.
// An error is a JSON `Refusal` with status 400 (wrong query), 401, 404 (no such project, run, step or file), 409 (the run
// cannot be read: damaged, of another format, of another user) or 421.
//
//   /data/session                     SessionDocument
//   /data/decided                     DecidedGates: decided gates of the runs in the fleet, latest first
//   /data/workflows                   WorkflowsDocument
//   /data/workflow?project=P&path=F[&workflow=N]     Program: the graph as written. 409 if it does not compile
//   /data/schedules                   SchedulesDocument
//   /data/usage                       UsageDocument
//   RUN/program                       ProgramDocument
//   RUN/records[?from=N][&to=N]       one PageRecord in each line (NDJSON), compressed; header `meow-generation`. In bulk,
//                                     for the first load and after a long disconnection
//   RUN/record?seq=N                  JournalRecord with its input, and texts in full
//   RUN/text?seq=N&at=POINTER         text/plain: what a TextReference stands for
//   RUN/prompt?step=ID[&attempt=N]    PromptDocument: prompt, command or texts of a step, as filled in
//   RUN/stored?step=ID&output=NAME    the JSON value of an output that is stored in a file (`kept` of a step)
//   RUN/outputs?step=ID[&attempt=N]   OutputsDocument. `attempt`: the last one if absent, as everywhere
//   RUN/output?step=ID[&attempt=N]&stream=S[&from=N][&length=N]   bytes as text/plain; headers `meow-from`, `meow-size` and,
//                                     if `line=1` is in the query, `meow-line` (number of the line that `from` is in, from 1).
//                                     `from` < 0 counts from the end. Without `length`: to the end (the raw output).
//                                     Bytes that were not kept are skipped: `meow-from` says where the bytes begin
//   RUN/output-line?step=…&stream=S&line=N           OutputPlace: where the line begins (the last one if there are fewer)
//   RUN/output-error?step=…&stream=S                 OutputPlace, or null: the first line that looks like an error
//   RUN/output-search?step=…&stream=S&find=TEXT[&case=1][&from=N][&max=N]   SearchDocument
//   RUN/diff[?step=ID]                DiffDocument: of the run's worktree; with a step, of that visit
//   /data/agent-lines                 AgentLinesDocument: the last lines of the terminals of agents at work
//
// Actions. All are POSTs of JSON with the cookie and our Origin; 403 under --read-only. 200 with `Done`, or a JSON `Refusal`:
// 400 (wrong body, a wrong variable), 403, 404 (no such project or run), 409 (refused: already decided, has ended, …), 413.
//
//   /do/token     TokenRequest → 204 and the cookie. Needs no cookie. Allowed under --read-only
//   /do/decide    DecideRequest → Done. For gates, dialogs and questions
//   /do/stop      StopRequest → Done
//   /do/pause     RunRequest → Done
//   /do/resume    RunRequest → Done: continues a run without an engine; failed steps stay failed
//   /do/retry     RunRequest → Done: resumes and tries failed steps again
//   /do/start     StartRequest → Done with `run`
//
// Pages. `/`, `/inbox`, `/workflows`, `/compare`, `/usage`, `/schedule`, `/p/PROJECT/r/RUN/VIEW`: the same document for all. Without a valid
// cookie: status 401 and a document that exchanges the token of the fragment. An address that names nothing: status 404 and
// `<meta name="meow-missing" content="SENTENCE">` in the document. `/terminal-frame`: the document for the sandboxed frame, which
// needs no cookie and loads the bundle of src/page/terminal-frame.ts.
//
// An exported file has the document of the page, with `<script type="application/json" id="meow-export">` (`ExportDocument`)
// in it. The page reads that instead of asking a server.

import type { Json } from '../base/json.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { FleetView } from '../view/fleet.ts';
import type { Program } from '../ir/program.ts';

/** Names a run in addresses and messages. `project`: as in the address of a page (`shop`, `shop~2`). */
export interface RunName {
  readonly project: string;
  readonly run: string;
}

/** A record as the page gets it: its input is fetched when somebody views it. */
export type PageRecord = Pick<JournalRecord, 'seq' | 'at' | 'decisions'>;

/**
 * In place of a text of more than TEXT_BYTES: the record's number, a JSON pointer into its decisions (`/0/outputs/log`), the
 * length of the text in bytes, and its first characters. A text that begins with U+0001 is always replaced.
 */
export type TextReference = `\u0001text ${number} ${string} ${number}\u0001${string}`;

export const TEXT_BYTES = 4096;

export interface KnownText {
  readonly seq: number;
  readonly at: string;
  readonly bytes: number;
  /** The first characters of the text. */
  readonly head: string;
}

/** Null if the text is not a reference but the text itself. */
export function readTextReference(text: string): KnownText | null {
  // oxlint-disable-next-line no-control-regex -- the mark of a reference
  const match = /^\u0001text (\d+) (\S*) (\d+)\u0001/.exec(text);
  if (match === null) return null;
  const [whole, seq, at = '', bytes] = match;
  return { seq: Number(seq), at: decodeURIComponent(at), bytes: Number(bytes), head: text.slice(whole.length) };
}

export function textReference({ seq, at, bytes, head }: KnownText): TextReference {
  return `\u0001text ${seq} ${encodeURIComponent(at)} ${bytes}\u0001${head}`;
}

// Addresses.

export const SOCKET_PATH = '/socket';
export const TERMINAL_FRAME_PATH = '/terminal-frame';

/** `/data/run/shop/wf-1/outputs?step=build`. Absent and null parts of the query are left out. */
export function runDataPath(
  { project, run }: RunName,
  document: RunDocumentName,
  query: Readonly<Record<string, string | number | null | undefined>> = {},
): string {
  const path = ['data', 'run', project, run, document].map((segment) => `/${encodeURIComponent(segment)}`).join('');
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  return given.length === 0 ? path : `${path}?${given.join('&')}`;
}

export type RunDocumentName =
  | 'program'
  | 'records'
  | 'record'
  | 'text'
  | 'prompt'
  | 'stored'
  | 'outputs'
  | 'output'
  | 'output-line'
  | 'output-error'
  | 'output-search'
  | 'diff';

export const RUN_VIEWS = ['timeline', 'graph', 'story', 'agents', 'gates', 'cost'] as const;
export type RunViewName = (typeof RUN_VIEWS)[number];

// Messages on the socket: one JSON object each.

/** From the page. At most MESSAGE_BYTES_MAX each. */
export type PageMessage =
  | { readonly kind: 'watch-fleet' }
  /** Answered with `pong` at once, so that a page notices a server that is silent. */
  | { readonly kind: 'ping' }
  /**
   * `generation`: of the journal that the page has folded; absent at first. `lastAt`: the time of the record before `fromSeq`
   * as the page has it. If either is not that of the stored journal, the server sends `run` with `cut` or a new generation.
   */
  | {
      readonly kind: 'follow';
      readonly of: RunName;
      readonly fromSeq: number;
      readonly generation?: string;
      readonly lastAt?: number;
    }
  | { readonly kind: 'unfollow'; readonly of: RunName }
  /** The transcript of an agent's terminal from this byte on. `from` < 0 counts from the end. */
  | { readonly kind: 'watch-terminal'; readonly of: RunName; readonly agent: string; readonly from: number }
  | { readonly kind: 'unwatch-terminal'; readonly of: RunName; readonly agent: string }
  /** Keys that a person typed, base64. Dropped under --read-only. `intoDialog`: the person saw that the agent asks something. */
  | {
      readonly kind: 'type-keys';
      readonly of: RunName;
      readonly agent: string;
      readonly bytes: string;
      readonly intoDialog: boolean;
    };

/** Before base64. */
export const KEYS_BYTES_MAX = 48 * 1024;

export const MESSAGE_BYTES_MAX = 1024 * 1024;

/** To the page. */
export type ServerMessage =
  /** The first message. `start` differs each time that the server is started, `build` with each version of the page. */
  | { readonly kind: 'hello'; readonly start: string; readonly build: string; readonly readOnly: boolean }
  | { readonly kind: 'pong' }
  /** The whole fleet; again after each change, at most twice a second. */
  | { readonly kind: 'fleet'; readonly fleet: FleetView }
  /**
   * The answer to `follow`, before its first records; again if another journal has taken the place of the run. The records
   * that follow begin with `fromSeq`: 1 if the generation is another one than the page's, so the page folds from the start.
   * `lastSeq`: the last record that is stored now.
   */
  | {
      readonly kind: 'run';
      readonly of: RunName;
      readonly generation: string;
      readonly fromSeq: number;
      readonly lastSeq: number;
      readonly engine: RunEngine | null;
    }
  /** In sequence, without a gap. */
  | { readonly kind: 'records'; readonly of: RunName; readonly records: readonly PageRecord[] }
  /** Records after this one do not count: fold again from the start. */
  | { readonly kind: 'cut'; readonly of: RunName; readonly lastSeq: number }
  /** Another engine has the run, or none. Whether it is interrupted follows from the state: `isInterrupted` of view/. */
  | { readonly kind: 'engine'; readonly of: RunName; readonly engine: RunEngine | null }
  /** The run cannot be followed any more. The page may follow it again. */
  | {
      readonly kind: 'lost';
      readonly of: RunName;
      readonly why: RunLoss;
      readonly message: string;
      readonly cure: string | null;
    }
  /** `from` and `to`: positions in the transcript; `bytes`: base64, without secrets; `size`: of the pane. */
  | {
      readonly kind: 'terminal';
      readonly of: RunName;
      readonly agent: string;
      readonly from: number;
      readonly to: number;
      readonly bytes: string;
      readonly size: PaneSize;
    }
  /** Nothing comes: the agent has no terminal. */
  | { readonly kind: 'terminal-ended'; readonly of: RunName; readonly agent: string; readonly message: string }
  /** Keys did not reach the agent. */
  | { readonly kind: 'keys-refused'; readonly of: RunName; readonly agent: string; readonly message: string };

export type RunLoss = 'missing' | 'deleted' | 'replaced' | 'damaged' | 'other-format' | 'denied';

export interface RunEngine {
  readonly pid: number;
  readonly host: string;
  readonly since: string;
}

export interface PaneSize {
  readonly columns: number;
  readonly rows: number;
}

// Documents.

export interface SessionDocument {
  readonly version: string;
  readonly start: string;
  readonly build: string;
  readonly readOnly: boolean;
  /** Who decides: the user that the server runs as. */
  readonly user: string;
  readonly projects: readonly ProjectDocument[];
  /** Folders of the list that were skipped, with the reason. */
  readonly remarks: readonly string[];
}

export interface ProjectDocument {
  /** As in addresses: the name of the folder, with `~2` … if several have it. */
  readonly name: string;
  readonly folder: string;
}

export interface ProgramDocument {
  readonly program: Program;
  readonly programHash: string;
}

export interface DecidedGates {
  readonly gates: readonly DecidedGate[];
}

export interface DecidedGate {
  readonly project: string;
  readonly run: string;
  readonly gate: string;
  readonly kind: 'gate' | 'dialog' | 'question';
  readonly status: 'approved' | 'rejected' | 'answered' | 'expired';
  readonly step: string | null;
  readonly prompt: string | null;
  /** ISO 8601. */
  readonly decidedAt: string | null;
  readonly by: string | null;
  readonly via: string | null;
  readonly notes: string | null;
  readonly answer: string | null;
}

export interface SchedulesDocument {
  readonly schedules: readonly ScheduleDocument[];
}

export interface ScheduleDocument {
  readonly project: string;
  readonly name: string;
  /** Null if it has a trigger. */
  readonly cron: string | null;
  readonly timezone: string | null;
  readonly path: string | null;
  readonly paused: boolean;
  /** ISO 8601; null if there is none. */
  readonly next: string | null;
  readonly problem: string | null;
  /** The latest runs, newest first. `status`: as in `meow list`. */
  readonly recent: readonly { readonly run: string; readonly status: string }[];
}

export interface WorkflowsDocument {
  readonly workflows: readonly WorkflowDocument[];
}

export interface WorkflowDocument {
  readonly project: string;
  /** Relative to the project's folder, as `meow run` takes it. */
  readonly path: string;
  /** Of a file with several workflows; null if it has only one. */
  readonly workflow: string | null;
  readonly language: string | null;
  readonly description: string | null;
  readonly valid: boolean;
  readonly variables: readonly VariableDocument[];
  readonly diagnostics: readonly DiagnosticDocument[];
}

export interface VariableDocument {
  readonly name: string;
  /** `string`, `number`, `boolean`, `json`, `file` … */
  readonly type: string;
  readonly required: boolean;
  /** Null if it has none. */
  readonly default: Json;
  readonly description: string | null;
}

export interface DiagnosticDocument {
  readonly severity: 'error' | 'warning';
  readonly code: string;
  /** Relative to the project's folder. */
  readonly file: string;
  /** From 1. Null if it concerns the whole file. */
  readonly line: number | null;
  readonly column: number | null;
  readonly message: string;
  readonly hint: string | null;
}

export interface UsageDocument {
  readonly rows: readonly UsageRow[];
  /** Runs that could not be read. */
  readonly unreadable: readonly RunName[];
}

/** What one agent used in one run on one day (in the time zone of the server). */
export interface UsageRow {
  /** `2026-11-19`. */
  readonly day: string;
  readonly project: string;
  readonly run: string;
  /** Null for turns without a named agent. */
  readonly agent: string | null;
  readonly adapter: string | null;
  readonly usd: number;
  readonly tokens: number;
  /** Turns without a reported price: `usd` is at least so much. */
  readonly unpriced: number;
  readonly turns: number;
}

export interface PromptDocument {
  /** `prompt` · `command` … : the kind of the step's effect; null if it has none. */
  readonly kind: string | null;
  readonly attempt: number;
  readonly texts: readonly FilledTextDocument[];
}

export interface FilledTextDocument {
  /** `prompt`, `script`, `question` … */
  readonly name: string;
  readonly text: string;
  /** Why the text is not complete; null if it is. */
  readonly problem: string | null;
}

export interface OutputsDocument {
  readonly attempt: number;
  /** The attempt's process has ended: no more bytes come. */
  readonly ended: boolean;
  readonly streams: readonly OutputStream[];
}

export interface OutputStream {
  /** `text`: events of an agent without a terminal, as text; its `stdout` has them as the agent wrote them. */
  readonly stream: StreamName;
  readonly format: 'text' | 'terminal';
  /** The first byte that was kept. */
  readonly start: number;
  readonly size: number;
}

export type StreamName = 'stdout' | 'stderr' | 'text';

export interface OutputPlace {
  readonly offset: number;
  /** From 1. */
  readonly line: number;
}

export interface SearchDocument {
  readonly matches: readonly OutputMatch[];
  /** Everything before this byte was searched; continue with `from`. */
  readonly searchedTo: number;
  readonly size: number;
  /** Whether there may be more. */
  readonly more: boolean;
}

export interface OutputMatch extends OutputPlace {
  /** In bytes. */
  readonly length: number;
}

export interface DiffDocument {
  /** Null: there is no worktree, or nothing to compare. `message` says why. */
  readonly text: string | null;
  readonly truncated: boolean;
  readonly message: string | null;
}

export interface AgentLinesDocument {
  readonly agents: readonly AgentLines[];
}

export interface AgentLines extends RunName {
  readonly agent: string;
  /** At most three, without control sequences. */
  readonly lines: readonly string[];
}

// Actions.

export interface TokenRequest {
  readonly token: string;
}

export interface DecideRequest extends RunName {
  readonly gate: string;
  readonly approved: boolean;
  readonly notes?: string | null;
  /** The text for a question; it approves. */
  readonly answer?: string | null;
}

export type RunActionRequest = RunName;

export interface StopRequest extends RunName {
  /** Kills at once, as `meow stop --force`. */
  readonly force?: boolean;
}

export interface StartRequest {
  readonly project: string;
  readonly path: string;
  readonly workflow?: string | null;
  /** As typed; parsed as `meow run --var` does. */
  readonly variables: Readonly<Record<string, string>>;
  /** With simulated agents: `--adapter sim`. */
  readonly sim?: boolean;
}

export interface Done {
  /** What happens next, for the person. */
  readonly note: string;
  /** Of /do/start. */
  readonly run?: RunName;
}

export interface Refusal {
  readonly message: string;
  /** What to do. */
  readonly cure: string | null;
  /** Messages at the fields of a form, by the name of the variable. */
  readonly fields?: Readonly<Record<string, string>>;
  readonly diagnostics?: readonly DiagnosticDocument[];
  /** Of a run that cannot be read. */
  readonly why?: RunLoss;
}

// An exported run.

export interface ExportDocument {
  readonly name: RunName;
  readonly program: Program;
  readonly programHash: string;
  readonly records: readonly PageRecord[];
  /** When it was exported: its clocks stand still at this time, in milliseconds since 1970. */
  readonly at: number;
  readonly engine: RunEngine | null;
  /** By `STEP#ATTEMPT`; empty unless the run was exported with its outputs. The end of a long output. */
  readonly outputs: Readonly<Record<string, readonly ExportedOutput[]>>;
}

export interface ExportedOutput {
  readonly stream: StreamName;
  /** Position of the first byte of `text`. */
  readonly from: number;
  readonly size: number;
  readonly text: string;
}
