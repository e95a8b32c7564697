// What the page and the frame of a terminal say to each other.

export type FrameMessage =
  | { readonly kind: 'output'; readonly bytes: Uint8Array; readonly columns: number; readonly rows: number }
  /** Whether keys are meant for the agent. */
  | { readonly kind: 'types'; readonly types: boolean }
  /** What follows is another terminal. */
  | { readonly kind: 'reset' };

export type FrameReport =
  | { readonly kind: 'ready' }
  | { readonly kind: 'keys'; readonly bytes: Uint8Array }
  /** The person wants to type no more. */
  | { readonly kind: 'leave' };
