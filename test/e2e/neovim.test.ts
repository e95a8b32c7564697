// The language server with an editor that people use: Neovim without a window.

import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { MEOW, Rig } from '../rig/rig.ts';

const hasNeovim = spawnSync('nvim', ['--version']).status === 0;
if (!hasNeovim) process.stderr.write('nvim is not installed, so its test is skipped; npm run setup installs it\n');

const SCRIPT = `
local function tell(value) io.stdout:write(vim.fn.json_encode(value) .. '\\n') end
vim.cmd('edit w.meow.toml')
local client = vim.lsp.start_client({ name = 'meow', cmd = { os.getenv('MEOW'), 'lsp', '--stdio' }, root_dir = vim.fn.getcwd() })
vim.lsp.buf_attach_client(0, client)
vim.wait(60000, function() return #vim.diagnostic.get(0) > 0 end)
local found = vim.diagnostic.get(0)[1]
tell({ found.code, found.lnum, found.severity, found.source })
vim.api.nvim_buf_set_lines(0, 4, 5, true, { 'needs = []' })
vim.wait(60000, function() return #vim.diagnostic.get(0) == 0 end)
tell(#vim.diagnostic.get(0))
local function ask(method, line, column, more)
  local position = { textDocument = vim.lsp.util.make_text_document_params(), position = { line = line, character = column } }
  local answers = vim.lsp.buf_request_sync(0, method, vim.tbl_extend('force', position, more or {}), 60000)
  return answers[client].result
end
tell(ask('textDocument/definition', 9, 20)[1].range.start)
vim.lsp.util.apply_workspace_edit(ask('textDocument/rename', 9, 20, { newName = 'compile' }), 'utf-16')
tell(vim.api.nvim_buf_get_lines(0, 0, -1, true))
vim.cmd('qa!')
`;

test.skipIf(!hasNeovim)('Neovim shows problems of unsaved text, jumps to a step and renames it', async () => {
  await using rig = await Rig.setup();
  const text = `[[main.steps]]
id = "build"
executor = "shell"
command = "true"
needs = ["biuld"]

[[main.steps]]
id = "ship"
executor = "shell"
command = "echo {{build.outputs.exit_code}}"
needs = ["build"]
`;
  rig.write('w.meow.toml', text);
  rig.write('script.lua', SCRIPT);
  const { stdout } = await rig.shell(
    `MEOW=${MEOW} nvim --headless --clean -i NONE -n -c 'luafile script.lua' < /dev/null`,
  );
  const [problem, left, definition, renamed] = stdout
    .trim()
    .split(/\r?\n/)
    .map((line) => JSON.parse(line) as unknown);
  expect(problem).toEqual(['unknown-need', 4, 1, 'meow']);
  expect(left).toBe(0);
  expect(definition).toEqual({ line: 1, character: 6 });
  expect(renamed).toEqual(text.replace('["biuld"]', '[]').replaceAll('build', 'compile').trimEnd().split('\n'));
});
