// Markdown on a terminal: what it looks like, and that it looks the same however the text arrives.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import { stripVTControlCharacters, styleText } from 'node:util';
import { createMarkdown } from '#cli/chat/markdown.ts';
import { callMillrace, makeFolder } from '#test/support/process.ts';
import { startSayingUpstream } from '#test/support/saying-upstream.ts';
import { startTestServer } from '#test/support/server.ts';
import { typeMillrace } from '#test/support/terminal.ts';

const answer = `# A title
Some **bold**, *italic* and \`code\` text, and **bold with \`code\` in it**.

- one
  * two with **bold**
1. first
> a quote

\`\`\`python
def f(*args, **kwargs):  # **not bold**
    return args
\`\`\`
---
2 * 3 * 4, snake_case, *unclosed and \`open
a**b, **, \`\`, ***
the end`;

const render = (pieces: readonly string[]) => {
  const markdown = createMarkdown();
  return pieces.map((piece) => markdown.write(piece)).join('') + markdown.end();
};
const style = (...[styles, text]: Parameters<typeof styleText>) =>
  styleText(styles, String(text), { validateStream: false });

describe('markdown on a terminal', () => {
  test('has headings, lists, quotes, code, bold and italic', () => {
    const shown = render([answer]);
    const lines = shown.split('\n');
    assert.equal(lines[0], style(['bold', 'underline'], 'A title'));
    for (const part of [
      style(['bold'], 'bold'),
      style(['italic'], 'italic'),
      style(['cyan'], 'code'),
      style(['bold', 'cyan'], 'code'),
      style(['cyan'], 'def f(*args, **kwargs):  # **not bold**'),
      style(['dim'], '│ '),
    ])
      assert(shown.includes(part), JSON.stringify(part));
    const plain = stripVTControlCharacters(shown).split('\n');
    assert.deepEqual(plain.slice(3, 6), ['• one', '  • two with bold', '1. first']);
    assert.equal(plain[12], '─'.repeat(40));
    assert.deepEqual(plain.slice(13), [
      '2 * 3 * 4, snake_case, *unclosed and `open',
      'a**b, **, ``, ***',
      'the end',
    ]);
  });

  test('looks the same whatever pieces the text arrives in', () => {
    const whole = stripVTControlCharacters(render([answer]));
    for (const size of [1, 2, 3, 7, 50]) {
      const pieces = answer.match(new RegExp(`.{1,${size}}`, 'gs')) ?? [];
      assert.equal(stripVTControlCharacters(render(pieces)), whole, `${size} characters each`);
    }
  });

  test('plain text is not held back, and an open marker only for a while', () => {
    const markdown = createMarkdown();
    assert.equal(stripVTControlCharacters(markdown.write('Hello, wor')), 'Hello, wor');
    assert.equal(markdown.write(' **bo'), ' ');
    assert.match(markdown.write('x'.repeat(600)), /\*\*.*bo.*x{600}/s);
  });

  test('run renders it on a terminal, and leaves it as it is in a pipe and with NO_COLOR', async () => {
    const upstream = await startSayingUpstream();
    upstream.say('# Ti', 'tle\nIt is **bo', 'ld**.');
    const backends = [{ name: 'box', url: upstream.url, model: 'said' }];
    const server = await startTestServer({
      config: { models: { catalog: { 'hermes3-8b': { backends } } } },
    });
    const env = {
      HOME: makeFolder(),
      PATH: process.env.PATH ?? '',
      MILLRACE_URL: server.url,
      MILLRACE_API_KEY: server.key,
      TERM: 'xterm-256color',
    };
    const words = ['run', 'Hello', '--model', 'hermes3-8b'];
    const shown = await typeMillrace(env, words, ['It is', '\u0004']);
    assert.equal(shown.code, 0, shown.raw);
    assert(shown.raw.includes(style(['bold'], 'bold')), JSON.stringify(shown.raw));
    assert(!shown.raw.includes('**'), shown.raw);
    const plain = await typeMillrace({ ...env, NO_COLOR: '1' }, words, ['It is', '\u0004']);
    assert(plain.raw.includes('# Title\r\nIt is **bold**.'), plain.raw);
    const piped = await callMillrace(words, { env });
    assert.equal(piped.stdout, '# Title\nIt is **bold**.\n');
  });
});
