// Lark grammars as regular expressions: what the grammar allows matches, and what is not regular is left to words.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toPattern } from '#inference/apis/responses/request/lark.ts';

/** The form of the patches that Codex writes. */
const patch = `
start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | delete_hunk | update_hunk
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change_move? change?

filename: /(.+)/
add_line: "+" /(.*)/ LF -> line

change_move: "*** Move to: " filename LF
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF

%import common.LF
`;

const matches = (grammar: string, text: string) => {
  const pattern = toPattern(grammar);
  assert(pattern !== null, grammar);
  return new RegExp(`^(?:${pattern})$`, 'u').test(text);
};

test('a grammar without recursion becomes a pattern', () => {
  const good = '*** Begin Patch\n*** Update File: a.ts\n@@ f()\n-one\n+two\n*** End Patch\n';
  assert(matches(patch, good));
  assert(matches(patch, '*** Begin Patch\n*** Add File: a\n+x\n+y\n*** End Patch'));
  assert(!matches(patch, good.replace('*** End Patch\n', '')));
  assert(!matches(patch, good.replace('-one', 'one')));
  const sum = `
    // A sum of numbers.
    ?start.2: number (("+" | "-") number)~1..3 [";"]
    number: INT | HEX
    HEX: "0x" ("0".."9" | "a".."f")~2
    %import common (INT, WS)
  `;
  for (const text of ['1+2', '1-0xaf+3;', '1+2+3+4']) assert(matches(sum, text), text);
  for (const text of ['1', '1+', '1+2+3+4+5', '0xg0+1', '1 + 2']) assert(!matches(sum, text), text);
  assert(matches('start: "a.b\\\\n" "[" | "\\""', 'a.b\\n['));
});

test('what is not regular or not supported is left to words', () => {
  for (const grammar of [
    'start: "(" start ")" | "x"',
    'start: a\na: b\nb: a',
    'start: missing',
    'start: "a" %ignore " "',
    'start: "a"i',
    'start: /a/i',
    'start: /(?P<name>a)/',
    'start: ("a"',
    'other: "a"',
    '%import python.NAME\nstart: NAME',
    '%import common.NONE\nstart: NONE',
    'start: x{"a"}',
    '',
  ])
    assert.equal(toPattern(grammar), null, grammar);
});

test('a grammar that would grow without bound is left to words, at once', () => {
  const double = (text: string) =>
    Array.from({ length: 60 }, (_, at) => `r${at}: r${at + 1} r${at + 1}`).join('\n') +
    `\nr60: ${text}\nstart: r0`;
  assert.equal(toPattern(double('"a"')), null);
  assert.equal(toPattern(double('""')), '');
  assert.equal(toPattern(`start: ${'('.repeat(5_000)}`), null);
  assert.equal(toPattern(`start: "a" ${'->b'.repeat(10_000)}`), null);
});
