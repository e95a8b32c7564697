// Runs the bundle of the VS Code extension with an editor that is nothing but names, and reports what it does as lines of JSON.
//
//   node extension-host.mjs BUNDLE trusted|untrusted

import Module, { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
// The bundle gets the same object, so its functions can be replaced.
const childProcess = require('node:child_process');

const [, , bundle, trust] = process.argv;
const isTrusted = trust === 'trusted';
const tell = (event) => process.stdout.write(`${JSON.stringify(event)}\n`);
const commands = new Map();
const granted = [];

for (const name of ['spawn', 'fork', 'exec', 'execFile']) {
  childProcess[name] = (command, args) => {
    tell({ kind: 'starts', command, args });
    throw new Error('this host starts nothing');
  };
}

/** Everything can be called, extended, read and looped over, and answers with more of the same. */
function anything() {
  function target() {}
  return new Proxy(target, {
    get: (_, key) => {
      if (key === 'prototype') return target.prototype;
      if (key === Symbol.iterator) return [][Symbol.iterator].bind([]);
      if (key === Symbol.toPrimitive) return () => '';
      return key === 'then' ? undefined : anything();
    },
    apply: () => anything(),
    construct: () => anything(),
  });
}

const some = (own) => new Proxy(own, { get: (target, key) => (key in target ? target[key] : anything()) });
const vscode = some({
  version: '1.91.0',
  commands: some({
    registerCommand: (id, act) => {
      commands.set(id, act);
      return { dispose: () => undefined };
    },
  }),
  window: some({
    showErrorMessage: async (message) => tell({ kind: 'error', message }),
    showWarningMessage: async (message) => tell({ kind: 'warning', message }),
  }),
  workspace: some({
    isTrusted,
    workspaceFolders: undefined,
    textDocuments: [],
    onDidGrantWorkspaceTrust: (listener) => {
      granted.push(listener);
      return { dispose: () => undefined };
    },
    getConfiguration: () => ({ get: (key) => (key === 'path' ? ' /opt/meow ' : undefined) }),
  }),
});

const load = Module._load;
Module._load = (request, ...rest) => (request === 'vscode' ? vscode : load(request, ...rest));

const extension = require(bundle);
await extension.activate({ subscriptions: [] });
tell({ kind: 'active', commands: [...commands.keys()] });
if (!isTrusted) {
  for (const act of commands.values()) await act();
  tell({ kind: 'granted' });
  for (const listener of granted) await listener();
}
