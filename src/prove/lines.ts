// A proof as lines of text for people.

import { formatCount, shortStory } from './wording.ts';
import type { Palette } from '../view/row.ts';
import { counted } from '../view/row.ts';
import type { Proof, ProvenClaim, ProvenEnding } from './proof.ts';

/** `bound`: why not everything was explored; null if it was. */
export function proofLines(proof: Proof, bound: string | null, palette: Palette): readonly string[] {
  const { explored, endings, never, loops, claims, hangs } = proof;
  const sections: readonly (readonly [string, readonly string[]])[] = [
    ['Endings', endings.map(endingLine)],
    ['Never reached', never],
    ['Waits forever', hangs.map(({ step, why }) => `${step} ${why}`)],
    ['Loops without a bound', loops.filter(({ bounded }) => !bounded).map(({ through }) => loopLine(through))],
    ['Worst case', [worstLine(proof), ...priceLines(proof)]],
    ['Claims', claims.flatMap((claim) => claimLines(claim, palette))],
    ['Assumptions', ASSUMPTIONS],
  ];
  const shown = sections.filter(([, lines]) => lines.length > 0);
  return [
    `explored ${counted(explored.states, 'state')}, ${bound === null ? 'everything that can happen' : `but not everything: ${bound}`}`,
    ...shown.flatMap(([title, lines]) => ['', palette.bold(title), ...lines.map((line) => `  ${line}`)]),
    '',
    verdictLine(proof, bound, palette),
  ];
}

/** What is taken for granted. */
const ASSUMPTIONS: readonly string[] = [
  'A command or an agent without a timeout answers.',
  'A gate is decided, or expires if it has a timeout.',
  'Account limits that reset and lost engines lead back to the same state.',
  'An answer has at most one fork.',
  'A list that is not written out has 0, 1 or 2 items.',
  'A Raymond state without a policy can do what its text shows.',
  'Workflows whose path is computed at run time are not explored.',
  'Nobody proposes golden snapshots, and git works.',
];

function endingLine(ending: ProvenEnding): string {
  const { status, step, reason, ways, shortest } = ending;
  const because = reason === null ? '' : ` (${reason})`;
  const head = `${status}${step === null ? '' : `: ${step}`}${because}`;
  return `${head} · ${counted(ways, 'way')} · ${shortStory(shortest)}`;
}

function loopLine(through: readonly string[]): string {
  const [first = 'a step'] = through;
  const round = through.length === 0 ? 'nothing ends in it' : [...through, first].join(' → ');
  return `${round}; bound it with max_visits, max_rounds, max_partial or retry`;
}

/** Null is no bound, unless not everything was explored. */
function worstLine({ worst: { turns, commands, agents_at_once: agents, usd }, explored: { complete } }: Proof): string {
  if (!complete) return 'not known, since not everything was explored';
  const dollars = usd === 'unknown' ? 'cost unknown' : usd === null ? '∞ dollars' : `$${usd.toFixed(2)}`;
  const at = agents === null ? '∞ agents at once' : `${counted(agents, 'agent')} at once`;
  return [formatCount(turns, 'turn'), formatCount(commands, 'command'), at, dollars].join(', ');
}

function priceLines({ prices }: Proof): readonly string[] {
  return prices.map(({ adapter, usd, from }) =>
    usd === null || from === null
      ? `the price of a turn of ${adapter} is unknown: pass --price ${adapter}=USD`
      : `a turn of ${adapter} costs $${usd.toFixed(2)}: ${from}`,
  );
}

function claimLines({ claim, holds, counterexample, why, test }: ProvenClaim, palette: Palette): readonly string[] {
  if (holds !== false) return [`${holds === true ? palette.green('holds  ') : palette.yellow('unknown')}  ${claim}`];
  const story = (counterexample ?? []).map(({ step, outcome }, index) => `  ${String(index + 1)}. ${step} ${outcome}`);
  return [
    `${palette.red('BROKEN ')}  ${claim}`,
    ...story,
    ...(why === null ? [] : [`  Here ${why}.`]),
    ...(test === null
      ? ['  No rule of a test can make this happen.']
      : ['  This test reproduces it:', '', ...test.trimEnd().split('\n'), '']),
  ];
}

function verdictLine({ exit, hangs, claims }: Proof, bound: string | null, palette: Palette): string {
  const broken = claims.filter(({ holds }) => holds === false).length;
  if (exit === 1) {
    const problems = [
      ...(broken === 0 ? [] : [`${counted(broken, 'claim')} broken`]),
      ...(hangs.length === 0 ? [] : ['a run can wait forever']),
    ];
    return palette.red(problems.join(', '));
  }
  if (exit === 0) return palette.green('proven');
  return palette.yellow(`not proven: ${bound ?? 'the price of a turn is unknown (--price ADAPTER=USD)'}`);
}
