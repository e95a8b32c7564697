import { describe, expect, test } from 'vitest';
import { type Block, blockReader } from './connection.ts';

function read(chunks: readonly string[], linesDue = 0): { blocks: Block[]; exits: string[] } {
  const blocks: Block[] = [];
  const exits: string[] = [];
  const take = blockReader({
    block: (block) => void blocks.push(block),
    exit: (reason) => void exits.push(reason),
    linesDue: () => linesDue,
  });
  for (const chunk of chunks) take(chunk);
  return { blocks, exits };
}

const answer = (...lines: readonly string[]): Block => ({ own: true, failed: false, lines });

describe('what tmux says', () => {
  test('is taken apart into blocks, however it is cut into pieces', () => {
    const said =
      '%begin 17 5 1\none\n\n%end 17 5 1\n%sessions-changed\n%begin 17 6 1\nno\n%error 17 6 1\n%begin 18 7 1\n%end 18 7 1\n';
    const blocks = [answer('one', ''), { own: true, failed: true, lines: ['no'] }, answer()];
    expect(read([said]).blocks).toEqual(blocks);
    expect(read(said.split('')).blocks).toEqual(blocks);
  });

  test('about hooks is no answer to us', () => {
    expect(read(['%begin 17 5 0\nfrom a hook\n%end 17 5 0\n']).blocks).toEqual([
      { own: false, failed: false, lines: ['from a hook'] },
    ]);
  });

  test('ends with %exit, and with the reason where there is one', () => {
    expect(read(['%exit\n']).exits).toEqual(['']);
    expect(read(['%exit server exited\n', '%exited\n']).exits).toEqual(['server exited']);
  });

  test('may look like anything within a block, but for the numbers of its beginning', () => {
    const lines = ['%end 17 6 1', '%error 17 5 0', '%end 17 5', '%begin 17 5 1', '%exit', ' %end 17 5 1'];
    expect(read([['%begin 17 5 1', ...lines, '%end 17 5 1', ''].join('\n')])).toEqual({
      blocks: [answer(...lines)],
      exits: [],
    });
  });

  test('may look like that too, where it is known how many lines there are', () => {
    const lines = ['%end 17 5 1', '%begin 17 6 1', '%error 17 5 1'];
    const said = ['%begin 17 5 1', ...lines, '%end 17 5 1', ''].join('\n');
    expect(read([said], 3).blocks).toEqual([answer(...lines)]);
  });
});
