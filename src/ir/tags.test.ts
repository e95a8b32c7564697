import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { allTags, readTags, type TagName, TRANSITION_TAGS } from './tags.ts';

const FENCE = '```';

/** `name target`, with attributes as they are read, faults and what is unclosed. */
function written(text: string): readonly string[] {
  const { tags, unclosed } = readTags(text);
  return [
    ...tags.map(({ name, attributes, content, error: fault }) => {
      const pairs = Object.entries(attributes).map(([key, value]) => ` ${key}=${value}`);
      return `${name}${pairs.join('')}: ${content}${fault === null ? '' : ` (${fault})`}`;
    }),
    ...unclosed.map((name) => `${name} unclosed`),
  ];
}

const unreadable = (name: string): string =>
  ` (the attributes of <${name}> cannot be read: each is written name="value")`;

type Case = readonly [what: string, text: string, ...found: readonly string[]];

const CASES: readonly Case[] = [
  // Where a tag stands
  ['nothing', ''],
  ['prose', 'All done, nothing to say.'],
  ['a tag alone', '<goto>A.md</goto>', 'goto: A.md'],
  ['a tag at the end', 'Done.\n\n<goto>A.md</goto>', 'goto: A.md'],
  ['a tag at the beginning', '<goto>A.md</goto>\nI did this and that.', 'goto: A.md'],
  ['a tag in the middle of a sentence', 'So <goto>A.md</goto> it is.', 'goto: A.md'],
  ['a tag without spaces around it', 'x<goto>A.md</goto>y', 'goto: A.md'],
  ['Windows line ends', 'Done.\r\n<goto>A.md</goto>\r\n', 'goto: A.md'],
  ['two tags', '<goto>A.md</goto> or <goto>B.md</goto>', 'goto: A.md', 'goto: B.md'],
  ['three kinds', '<goto>A</goto><reset>B</reset><result>c</result>', 'goto: A', 'reset: B', 'result: c'],
  ['text that is not ASCII', 'Schön 🐝 <goto>ÜBER.md</goto> 完', 'goto: ÜBER.md'],
  ['a byte order mark', '\uFEFF<goto>A.md</goto>', 'goto: A.md'],
  ['a NUL byte', '\0<goto>A.md</goto>\0', 'goto: A.md'],
  ['half of a surrogate pair', '\uD83D<goto>A.md</goto>\uDC1D', 'goto: A.md'],

  // Names
  ['a longer word', '<resulting>x</resulting>'],
  ['a longer word with a hyphen', '<result-set>x</result-set>'],
  ['a name with a digit', '<goto2>x</goto2>'],
  ['a name with a dot', '<goto.x>A</goto.x>'],
  ['a namespace', '<x:goto>A</x:goto>'],
  ['upper case', '<GOTO>A.md</GOTO>'],
  ['mixed case', '<Goto>A.md</Goto>'],
  ['a space before the name', '< goto>A.md</goto>'],
  ['another tag', '<transition>A.md</transition>'],
  ['every tag of another workflow', '<call-workflow return="B">../x</call-workflow>', 'call-workflow return=B: ../x'],
  ['a hyphenated name that is none', '<goto-workflow>../x</goto-workflow>'],
  ['print', '<print>halfway</print>', 'print: halfway'],
  ['ask', '<ask next="A.md">Which?</ask>', 'ask next=A.md: Which?'],

  // Attributes
  ['double quotes', '<call return="B.md">A.md</call>', 'call return=B.md: A.md'],
  ['single quotes', "<call return='B.md'>A.md</call>", 'call return=B.md: A.md'],
  ['spaces around =', '<call return = "B.md">A.md</call>', 'call return=B.md: A.md'],
  ['a line end in the tag', '<fork\n  next="B"\n  item="x"\n>A</fork>', 'fork next=B item=x: A'],
  ['space before >', '<call return="B.md" >A.md</call>', 'call return=B.md: A.md'],
  ['space in the end', '<goto>A.md</goto\n >', 'goto: A.md'],
  ['a hyphen in a name', '<fork next="B" my-item="x">A</fork>', 'fork next=B my-item=x: A'],
  ['> in quotes', '<fork next="B" rule="a > b">A</fork>', 'fork next=B rule=a > b: A'],
  ['< in quotes', '<fork next="B" rule="a < b">A</fork>', 'fork next=B rule=a < b: A'],
  ['a tag in quotes', '<fork next="B" x="<goto>C</goto>">A</fork>', 'fork next=B x=<goto>C</goto>: A'],
  ['the other quote in quotes', `<fork next="B" x="it's">A</fork>`, "fork next=B x=it's: A"],
  ['an empty value', '<goto input="">A</goto>', 'goto input=: A'],
  ['a line end in a value', '<goto input="one\ntwo">A</goto>', 'goto input=one\ntwo: A'],
  ['entities stay', '<goto input="a &amp; b">A &lt;</goto>', 'goto input=a &amp; b: A &lt;'],
  ['upper case in a name', '<fork next="B" Item="x">A</fork>', 'fork next=B Item=x: A'],
  ['a name that every object has', '<fork constructor="x" __proto__="y">A</fork>', 'fork constructor=x __proto__=y: A'],
  ['twice the same', '<goto a="1" a="2">A</goto>', 'goto a=2: A (<goto> has the attribute a twice)'],
  ['no quotes', '<call return=B.md>A.md</call>', `call: A.md${unreadable('call')}`],
  ['no value', '<fork next>A.md</fork>', `fork: A.md${unreadable('fork')}`],
  ['no space between', '<fork a="1"b="2">A.md</fork>', `fork a=1: A.md${unreadable('fork')}`],
  ['quotes that do not fit', `<call return="B.md'>A.md</call>`, `call: A.md${unreadable('call')}`],

  // Contents
  ['nothing in it', '<goto></goto>', 'goto: '],
  ['spaces in it', '<goto>  A.md  </goto>', 'goto:   A.md  '],
  ['lines in it', '<goto>\nA.md\n</goto>', 'goto: \nA.md\n'],
  ['a path', '<goto>../../etc/passwd</goto>', 'goto: ../../etc/passwd'],
  ['a result over lines', '<result>\none\n\ntwo\n</result>', 'result: \none\n\ntwo\n'],
  ['an empty result', '<result></result>', 'result: '],
  ['markup in a result', '<result><b>x</b> 1 < 2</result>', 'result: <b>x</b> 1 < 2'],
  ['a tag in a result', '<result>say <goto>A.md</goto></result>', 'result: say <goto>A.md</goto>'],
  ['a result in a result', '<result>a <result>b</result> c</result>', 'result: a <result>b</result> c'],
  ['a print in a result', '<result><print>x</print></result>', 'result: <print>x</print>'],
  ['a tag in a print', '<print><goto>A</goto></print><goto>B</goto>', 'print: <goto>A</goto>', 'goto: B'],
  ['a question with a tag', '<ask next="A">May I <reset>B</reset>?</ask>', 'ask next=A: May I <reset>B</reset>?'],
  ['a fence in a result', `<result>\n${FENCE}js\nx\n${FENCE}\n</result>`, `result: \n${FENCE}js\nx\n${FENCE}\n`],
  [
    'a result that ends in code as well',
    '<result>ends with `</result>` always</result>',
    'result: ends with `</result>` always',
  ],

  // Beginnings without an end
  ['no end', '<goto>A.md', 'goto unclosed'],
  ['the end of another', '<goto>A.md</reset>', 'goto unclosed'],
  ['cut off in the name', 'see <goto'],
  ['cut off in an attribute', '<call return="B.md'],
  ['cut off in the end', '<goto>A.md</goto', 'goto unclosed'],
  ['an end alone', 'A.md</goto>'],
  ['nothing but itself', '<goto/>', 'goto unclosed'],
  ['nothing but itself, with a space', '<result />', 'result unclosed'],
  ['unclosed, and then a good one', 'not <goto>A.md but <goto>B.md</goto>', 'goto: B.md', 'goto unclosed'],
  ['a word about a tag', 'I end with <result> now: <result>x</result>', 'result: x', 'result unclosed'],
  ['an unclosed result before another tag', '<result>so <goto>A.md</goto>', 'goto: A.md', 'result unclosed'],
  ['an end too many', '<result>a</result></result>', 'result: a'],

  // Code
  ['the only tag, fenced', `Here:\n${FENCE}\n<goto>A.md</goto>\n${FENCE}\n`, 'goto: A.md'],
  ['the only tag, fenced as xml', `${FENCE}xml\n<goto>A.md</goto>\n${FENCE}`, 'goto: A.md'],
  ['the only tag, in a span', 'I say `<goto>A.md</goto>`.', 'goto: A.md'],
  ['one fenced, one not', `${FENCE}\n<goto>A</goto>\n${FENCE}\n<goto>B</goto>`, 'goto: B'],
  ['one in a span, one not', 'not `<goto>A</goto>` but <goto>B</goto>', 'goto: B'],
  ['two, both in code', '`<goto>A</goto>` or `<goto>B</goto>`', 'goto: A', 'goto: B'],
  ['a span of two backticks', '``x ` <goto>A</goto>`` <goto>B</goto>', 'goto: B'],
  ['a span over a line end', '`so\n<goto>A</goto>` <goto>B</goto>', 'goto: B'],
  ['no span over an empty line', '`so\n\n<goto>A</goto>` it is', 'goto: A'],
  ['a backtick alone', 'a ` and <goto>A</goto>', 'goto: A'],
  ['an escaped backtick', '\\`<goto>A</goto>\\` <goto>B</goto>', 'goto: A', 'goto: B'],
  ['tildes', '~~~\n<goto>A</goto>\n~~~\n<goto>B</goto>', 'goto: B'],
  ['a longer fence', `${FENCE}\`\n${FENCE}\n<goto>A</goto>\n${FENCE}\`\n<goto>B</goto>`, 'goto: B'],
  ['an indented fence', `- so:\n   ${FENCE}\n   <goto>A</goto>\n   ${FENCE}\n<goto>B</goto>`, 'goto: B'],
  ['a fence in a list', `- ${FENCE}\n  <goto>A</goto>\n  ${FENCE}\n<goto>B</goto>`, 'goto: B'],
  ['a quoted fence', `> ${FENCE}\n> <goto>A</goto>\n> ${FENCE}\n<goto>B</goto>`, 'goto: B'],
  ['a fence that is not closed', `<goto>A</goto>\n${FENCE}\n<goto>B</goto>`, 'goto: A'],
  ['the only tag, behind a fence that is not closed', `${FENCE}\nx\n<goto>B</goto>`, 'goto: B'],
  ['a fence with Windows line ends', `${FENCE}\r\n<goto>A</goto>\r\n${FENCE}\r\n<goto>B</goto>`, 'goto: B'],
  ['a print outside of code is no transition', '<print>x</print> `<goto>A</goto>`', 'print: x', 'goto: A'],
  ['a print in code is text beside a transition', '`<print>x</print>` <goto>A</goto>', 'goto: A'],
  ['what looks like a fence and is a span', `${FENCE}<goto>A</goto>${FENCE} <goto>B</goto>`, 'goto: B'],
];

describe('the tags of an answer', () => {
  test.each(CASES)('%s', (_what, text, ...found) => {
    expect(written(text)).toEqual(found);
  });

  test('there are enough cases, each with another text', () => {
    expect(new Set(CASES.map(([, text]) => text)).size).toBe(CASES.length);
    expect(CASES.length).toBeGreaterThanOrEqual(60);
  });

  test('positions are offsets in the text', () => {
    const text = 'so `x` <call return="B">A</call>, and\n<result>y</result>!';
    const { tags } = readTags(text);
    expect(tags.map(({ from, to }) => text.slice(from, to))).toEqual([
      '<call return="B">A</call>',
      '<result>y</result>',
    ]);
  });

  test('allTags includes tags in code', () => {
    const text = `Say \`<goto>A</goto>\`, or:\n${FENCE}\n<result>x</result>\n${FENCE}\nor <goto>B</goto>`;
    expect(allTags(text).map(({ name, content }) => `${name} ${content}`)).toEqual(['goto A', 'result x', 'goto B']);
  });
});

/** A tag as an agent may write it. */
const name = fc.constantFrom<TagName>(...TRANSITION_TAGS, 'print');
const plain = fc.string({ maxLength: 12 }).map((text) => text.replaceAll(/[<>`~"'\\]/g, '.'));
const attribute = fc
  .tuple(fc.stringMatching(/^[a-z][a-z_-]{0,8}$/), plain, fc.constantFrom('"', "'"))
  .map(([key, value, quote]) => ` ${key}=${quote}${value}${quote}`);
const tag = fc
  .tuple(name, fc.uniqueArray(attribute, { maxLength: 3, selector: (text) => text.split('=')[0] }), plain)
  .map(([word, attributes, content]) => ({
    word,
    text: `<${word}${attributes.join('')}>${content}</${word}>`,
  }));
/** Prose that has no code, and tags of other kinds. */
const prose = fc
  .array(fc.constantFrom('so ', '\n', '\n\n', '<b>', '</b>', '<br/>', ' < ', ' > ', '<<', 'x="y" ', 'é🐝', '</goto>'))
  .map((parts) => parts.join(''));

const SHARDS = ['<', '>', '</', '"', "'", '=', ' ', '\n', '`', FENCE, '~~~', '\\', '/>', '\0', '\uD83D', '- ', '> '];

describe('any text', () => {
  test('with n tags outside of code has n tags with their names', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(prose, tag), { maxLength: 8 }), prose, (pieces, last) => {
        const text = pieces.map(([before, { text: written }]) => `${before}${written}`).join('') + last;
        expect(readTags(text).tags.map(({ name: word }) => word)).toEqual(pieces.map(([, { word }]) => word));
      }),
    );
  });

  test('has the same tags with code around them, if one is outside', () => {
    const code = fc
      .tuple(tag, fc.boolean())
      .map(([{ text }, fenced]) =>
        fenced ? `\n\n${FENCE}\n${text}\n${FENCE}\n\n` : ` \`${text.replaceAll('\n', ' ')}\` `,
      );
    fc.assert(
      fc.property(fc.array(fc.tuple(code, tag), { minLength: 1, maxLength: 6 }), (pieces) => {
        const outside = pieces.map(([, { text }]) => `\n\n${text}\n\n`);
        const mixed = pieces.map(([inside], index) => `${inside}${outside[index] ?? ''}`).join('');
        const names = pieces.map(([, { word }]) => word).filter((word) => word !== 'print');
        fc.pre(names.length > 0);
        expect(
          readTags(mixed)
            .tags.map(({ name: word }) => word)
            .filter((word) => word !== 'print'),
        ).toEqual(names);
      }),
    );
  });

  test('can always be read', () => {
    const shards = fc.constantFrom(
      ...SHARDS,
      ...TRANSITION_TAGS,
      ...TRANSITION_TAGS.map((word) => `<${word}>`),
      ...TRANSITION_TAGS.map((word) => `</${word}>`),
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.array(shards).map((parts) => parts.join('')),
        ),
        (text) => {
          let past = 0;
          for (const { from, to, name: word } of readTags(text).tags) {
            expect(from).toBeGreaterThanOrEqual(past);
            expect(text.startsWith(`<${word}`, from) && text[to - 1] === '>').toBe(true);
            past = to;
          }
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

describe('a long text', () => {
  const filled = (unit: string, size: number): string => unit.repeat(Math.ceil(size / unit.length));

  // Whatever takes more than time in proportion to the text would not end within a test's time.
  test('of a million times < is read', () => {
    expect(readTags(`${filled('<', 1_000_000)}<goto>A</goto>`).tags.length).toBe(1);
  });

  test.each([
    '<<goto>',
    '<goto>',
    '<goto ',
    '<goto a="',
    "<goto a='",
    '<goto a="1" ',
    '<goto a="<goto b=\'" c="\' d=\'',
    '" <goto a=" b="',
    '<goto a=1>',
    '</goto>',
    '<result>',
    '</result>',
    '<result></result>',
    '<result><ask><print>',
    '<result>x`',
    '<goto>A</goto>',
    '<goto>`',
    '<a-',
    'a',
    '`',
    '`<goto>',
    '` `` ``` <goto>',
    '\\`<goto>',
    '\n',
    '<goto>\n',
    `${FENCE}\n<goto>\n`,
    '- <goto>\n',
    '> '.repeat(100),
    ' <goto>',
    '\\',
  ])('made of %j is read', (unit) => {
    const text = `${filled(unit, 200_000)}<goto>A</goto>`;
    expect(readTags(text).tags.length).toBeGreaterThanOrEqual(0);
  });

  test('has as many tags as were written', () => {
    expect(readTags('<goto>A</goto>\n'.repeat(100_000)).tags.length).toBe(100_000);
  });
});
