// The run in an exported file (`meow ui export`). Such a page asks no server and shows only this run.

import type { ExportDocument } from '../web/protocol.ts';

const text = document.querySelector('#meow-export')?.textContent ?? '';

/** Null on the page of a server. */
export const exported: ExportDocument | null = text === '' ? null : (JSON.parse(text) as ExportDocument);
