// The parts of the playground's markdown that need no browser: blocks, maths, reasoning, names and addresses.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toName } from '../../web/src/playground/conversation.ts';
import {
  findDefinitions,
  findOpenCode,
  findOpenMaths,
  isTooComplex,
  normalizeMaths,
  splitBlocks,
  splitTable,
} from '../../web/src/playground/markdown-blocks.ts';
import { splitThinking } from '../../web/src/playground/thinking.ts';

const answer = `Intro.

- one

- two
  continued

\`\`\`js
const a = 1;

\`\`\`\`js
const b = 2;
\`\`\`

$$
x

y
$$

End.`;

test('an answer is cut between its blocks, never inside lists, code or maths', () => {
  const blocks = splitBlocks(answer);
  assert.equal(blocks.join('\n'), answer);
  assert.deepEqual(
    blocks.map((block) => block.trim().split('\n')[0]),
    ['Intro.', '- one', '```js', '$$', 'End.'],
  );
});

test('while an answer grows, only its last block changes', () => {
  let before: string[] = [];
  for (let length = 1; length <= answer.length; length++) {
    const blocks = splitBlocks(answer.slice(0, length));
    assert.deepEqual(blocks.slice(0, before.length - 1), before.slice(0, -1), `at ${length}`);
    before = blocks;
  }
});

test('a long list is cut into blocks of bounded length, which no longer change', () => {
  const item = (mark: string) => `${mark} Item\n   - nested\n   - again`;
  const numbered = Array.from({ length: 65 }, (_, index) => item(`${index + 1}.`)).join('\n');
  const bullets = Array.from({ length: 65 }, () => item('-')).join('\n\n');
  for (const list of [numbered, bullets]) {
    const blocks = splitBlocks(list);
    assert.equal(blocks.join('\n'), list);
    assert.deepEqual(
      blocks.map((block) => block.match(/^(-|\d+\.) /gm)?.length),
      [20, 20, 20, 5],
    );
    let before: string[] = [];
    for (let length = 1; length <= list.length; length++) {
      const grown = splitBlocks(list.slice(0, length));
      assert.deepEqual(grown.slice(0, before.length - 1), before.slice(0, -1), `at ${length}`);
      before = grown;
    }
  }
  assert.match(splitBlocks(numbered)[1] ?? '', /^21\. /);
  const ones = Array.from({ length: 65 }, () => '1. One').join('\n');
  assert.equal(splitBlocks(ones).length, 1, 'its numbers would start again');
  const mixed = `${Array.from({ length: 20 }, () => '- a').join('\n')}\n* another list`;
  assert.equal(splitBlocks(mixed).length, 1);
});

test('a long table is parsed in pieces of bounded length, each with its head', () => {
  const rows = Array.from({ length: 45 }, (_, index) => `| ${index} | x |`);
  const pieces = splitTable(`| n | of |\n|---|:-:|\n${rows.join('\n')}\n\n`) ?? [];
  assert.deepEqual(
    pieces.map((piece) => piece.split('\n').length),
    [22, 22, 7],
  );
  assert(pieces.every((piece) => piece.startsWith('| n | of |\n|---|:-:|\n| ')));
  assert.equal(splitTable(`| n | of |\n|---|---|\n${rows.slice(0, 20).join('\n')}`), null);
  assert.equal(splitTable(`Text\n---\n${rows.join('\n')}`), null);
});

test('maths in every common notation is found, and money and code are left alone', () => {
  assert.equal(normalizeMaths('It is $x^2$.'), 'It is $$x^2$$.');
  assert.equal(normalizeMaths('It is \\(x\\).'), 'It is $$x$$.');
  assert.equal(normalizeMaths('\\[x\\]'), '\n$$\nx\n$$\n');
  for (const same of [
    'From $5 to $10.',
    '$5-$10',
    '`$a$`',
    '```\n$a$\n```',
    '$$x$$',
    '\\$5 and 6$',
  ])
    assert.equal(normalizeMaths(same), same);
});

test('only a leading think section is reasoning, however it is cut into pieces', () => {
  const read = (...pieces: string[]) => {
    let state = { content: '', text: '', reasoning: '' };
    for (const piece of pieces) {
      state = { ...state, content: state.content + piece };
      state = { ...state, ...splitThinking(state, piece) };
    }
    return [state.reasoning, state.text];
  };
  const whole = '\n<think>\nA <b> c\n</think>\n\nYes <think> no';
  assert.deepEqual(read(whole), ['A <b> c', 'Yes <think> no']);
  assert.deepEqual(read(...whole), ['A <b> c', 'Yes <think> no']);
  assert.deepEqual(read('Use ', '<think>', 'x'), ['', 'Use <think>x']);
  assert.deepEqual(read('<', 'b>'), ['', '<b>']);
});

test('a conversation is named by the first words of its first question', () => {
  const name = (text: string) => toName([{ id: '1', role: 'user', text }]);
  assert.equal(name(' Why\n\tso? '), 'Why so?');
  assert.equal(name(''), 'Untitled');
  assert.equal(name('word '.repeat(40)), `${'word '.repeat(11)}word…`);
});

test('a block that would stop the browser stays plain text', () => {
  const hostile = [
    '>'.repeat(1000),
    '- '.repeat(1000),
    '1. > '.repeat(500),
    '*a '.repeat(3000),
    '['.repeat(3000),
    `${'|a'.repeat(200)}\n${'|-'.repeat(200)}`,
    `\`\`\`\n\`\`\`\n${'*a '.repeat(3000)}`,
    `\`\`\` \`\n${'*a '.repeat(3000)}`,
    `<div>\n~~~\n\n${'*a '.repeat(3000)}`,
    'a'.repeat(100_001),
  ];
  for (const block of hostile) assert.ok(isTooComplex(block), block.slice(0, 20));
  const usual = [
    `\`\`\`c\n${'a[i] = *b[i];\n'.repeat(5000)}\`\`\``,
    '- **bold** and [a link](https://example.com)\n'.repeat(1000),
    `${'|a'.repeat(12)}\n${'|-'.repeat(12)}\n${`${'|b'.repeat(12)}\n`.repeat(500)}`,
    '-'.repeat(200),
  ];
  for (const block of usual) assert.ok(!isTooComplex(block), block.slice(0, 20));
});

test('definitions beyond a bound are not added to every block', () => {
  assert.equal(findDefinitions('[a]: https://example.com'), '[a]: https://example.com');
  assert.equal(findDefinitions('[a]: https://example.com\n'.repeat(1000)), '');
});

test('code is found in a block whose fence has not ended, and in no other', () => {
  const code = 'const a = `x`;\n\n``` not the end';
  assert.deepEqual(findOpenCode(`\`\`\`ts title\n${code}`), { language: 'ts', code });
  assert.deepEqual(findOpenCode('~~~~\n~~~\n'), { language: '', code: '~~~\n' });
  for (const other of ['```ts', '```ts\nx\n```', '```ts\nx\n````\n', 'text\n```\nx', '``` a`b\nx'])
    assert.equal(findOpenCode(other), null, other);
});

test('display maths is open until its closing mark has arrived', () => {
  for (const open of ['$$\nx^2', '$$x', '\\[ x', '$$', '\\[ x \\\\[2pt] y', '$$\nx\n$'])
    assert.equal(findOpenMaths(open), 0, open);
  for (const [before, open] of [
    ['So:\n', '$$\n\\frac{1'],
    ['1. Area\n   ', '$$\nx'],
    ['- ', '$$\nx'],
    ['$$a$$ and\n> ', '$$\nb'],
    ['We get ', '\\[ x'],
  ] as const)
    assert.equal(findOpenMaths(before + open), before.length, before + open);
  for (const closed of [
    '$$\nx^2\n$$',
    '$$x$$',
    '\\[ x \\]',
    'costs $$',
    'text',
    'So:\n$$\nx\n$$\nand',
    '- `echo $$`\n- `\\[`',
  ])
    assert.equal(findOpenMaths(closed), null, closed);
});
