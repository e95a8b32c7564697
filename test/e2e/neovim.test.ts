// The language server with an editor that people use: Neovim without a window, configured as docs/editors.md says.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { MEOW, Rig } from '../rig/rig.ts';

const found = spawnSync('nvim', ['--version'], { encoding: 'utf8' });
const hasNeovim = found.status === 0;
if (!hasNeovim) process.stderr.write('nvim is not installed, so its test is skipped; npm run setup installs it\n');

/** The part of the page that is for the installed version. */
function configuration(): string {
  const page = readFileSync(join(import.meta.dirname, '../../docs/editors.md'), 'utf8');
  const [current = '', older = ''] = [...page.matchAll(/^```lua\n(.*?)^```/gms)].map(([, block = '']) => block);
  const [, minor = '0'] = /NVIM v0\.(\d+)/.exec(found.stdout) ?? [];
  return Number(minor) >= 11 ? current : older;
}

const SCRIPT = `
local function tell(value) io.stdout:write(vim.fn.json_encode(value) .. '\\n') end
local function wait(condition) assert(vim.wait(120000, condition, 20), 'nothing happened for two minutes') end
local function ask(method, line, column)
  local params = { textDocument = vim.lsp.util.make_text_document_params(), position = { line = line, character = column } }
  for _, answer in pairs(vim.lsp.buf_request_sync(0, method, params, 120000)) do return answer.result end
end

vim.cmd('edit main.meow.toml')
wait(function() return #vim.diagnostic.get(0) > 0 end)
local problem = vim.diagnostic.get(0)[1]
tell({ problem.code, problem.lnum, problem.severity, problem.source })
vim.api.nvim_buf_set_lines(0, 10, 11, true, { 'needs = ["build"]' })
wait(function() return #vim.diagnostic.get(0) == 0 end)

vim.api.nvim_buf_set_lines(0, 9, 10, true, { 'command = "echo {{"' })
local labels = {}
for _, item in ipairs(ask('textDocument/completion', 9, 18)) do table.insert(labels, item.label) end
tell(labels)
vim.api.nvim_buf_set_lines(0, 9, 10, true, { 'command = "echo {{build.outputs.exit_code}}"' })

tell(ask('textDocument/definition', 9, 20)[1].range.start)
vim.api.nvim_win_set_cursor(0, { 10, 20 })
vim.lsp.buf.rename('compile')
wait(function() return vim.api.nvim_buf_get_lines(0, 1, 2, true)[1] == 'id = "compile"' end)
vim.cmd('wall')
vim.cmd('qa!')
`;

const MAIN = `[[main.steps]]
id = "build"
executor = "shell"
command = "true"

[[main.steps]]
id = "show"
description = "Shows it."
executor = "shell"
command = "true"
needs = ["biuld"]

[[main.steps]]
id = "ship"
executor = "expand"
template = "other#deploy"
needs = ["build"]
`;
const OTHER = `[[deploy.steps]]
id = "push"
executor = "shell"
command = "echo {{build.outputs.exit_code}}"
`;

test.skipIf(!hasNeovim)('Neovim shows a problem, completes a step and renames it in two files', async () => {
  await using rig = await Rig.setup();
  rig.write('main.meow.toml', MAIN);
  rig.write('other.meow.toml', OTHER);
  rig.write('init.lua', configuration());
  rig.write('script.lua', SCRIPT);
  const { stdout, stderr } = await rig.shell(
    `PATH=${dirname(MEOW)}:$PATH nvim --headless --clean -i NONE -n -u init.lua -c 'luafile script.lua' < /dev/null`,
  );
  const told = stdout.trim().split(/\r?\n/);
  expect(told, stderr).toHaveLength(3);
  const [problem, labels, definition] = told.map((line) => JSON.parse(line) as unknown);
  expect(problem).toEqual(['unknown-need', 10, 1, 'meow']);
  expect(labels).toContain('build');
  expect(definition).toEqual({ line: 1, character: 6 });
  expect(rig.read('main.meow.toml')).toBe(
    MAIN.replace(/command = "true"\nneeds/, 'command = "echo {{build.outputs.exit_code}}"\nneeds')
      .replace('biuld', 'build')
      .replaceAll('build', 'compile'),
  );
  expect(rig.read('other.meow.toml')).toBe(OTHER.replace('build', 'compile'));
});
