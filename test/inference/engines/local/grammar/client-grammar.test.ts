// Grammars that clients write: the same texts belong to what is compiled, and what llama.cpp could not follow is refused.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compileGrammar } from '#inference/engines/local/grammar-thread/compile-grammar.ts';
import { type Grammar, readGrammar } from '#test/support/grammar/gbnf.ts';
import { belongs, createWriter } from '#test/support/grammar/gbnf-text.ts';
import { createRandom } from '#test/support/random.ts';

function grammarOf(value: string): Grammar {
  const compiled = compileGrammar({ kind: 'grammar', value });
  assert('grammar' in compiled, JSON.stringify(compiled));
  return readGrammar(compiled.grammar);
}

function refusalOf(value: string): string {
  const compiled = compileGrammar({ kind: 'grammar', value });
  assert('refusal' in compiled, value);
  return compiled.refusal;
}

/** llama.cpp's own example. */
const json = String.raw`root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
`;

const cases: [string, source: string, accepted: string[], rejected: string[]][] = [
  [
    'the JSON of llama.cpp',
    json,
    ['{}', '{"a": [1, -2.5e3, {"b": null}], "c": "x\\n\\u00e9"}', '{ "a":true}'],
    ['', '[]', '{"a" 1}', '{"a":1,}', '{"a":01}', '{"a":"\\x"}', '{}}'],
  ],
  [
    'texts with a common beginning',
    'root ::= "foo" | "foobar" | "f" [0-9]{2,3} | other\nother ::= "é" | "\\U0001F600"+',
    ['foo', 'foobar', 'f12', 'f123', 'é', '😀😀'],
    ['fo', 'foob', 'f1', 'f1234', '😀é', ''],
  ],
  [
    'a list, rule by rule',
    'root ::= item+\nitem ::= "- " [^\\r\\n\\x0b]+ "\\n" # a line\n',
    ['- a\n', '- a\n- b c\n'],
    ['- a', '-a\n', '- \n'],
  ],
  [
    'recursion at the end, and alternatives on lines of their own',
    'root ::= "a" root\n  | "b"\n  | "(" root ")" "!"?',
    ['b', 'aab', '(b)', 'a(ab)!', '((b)!)!'],
    ['a', '(b', 'b!', '(b)!!'],
  ],
  [
    'an expression',
    'root ::= term ([-+*/] term)*\nterm ::= [0-9]+ | "(" root ")"',
    ['1', '12+(3*4)-5', '((7))'],
    ['', '1+', '()', '1 + 2'],
  ],
];

describe('a client’s grammar', () => {
  for (const [name, source, accepted, rejected] of cases)
    test(`means the same: ${name}`, () => {
      const grammar = grammarOf(source);
      for (const text of accepted) assert(belongs(grammar, text), JSON.stringify(text));
      for (const text of rejected) assert(!belongs(grammar, text), JSON.stringify(text));
    });

  test('of JSON produces JSON', () => {
    const write = createWriter(grammarOf(json));
    const next = createRandom(11);
    const random = () => next(2 ** 20) / 2 ** 20;
    for (let round = 0; round < 100; round++) {
      const text = write({ random, length: 60, repeat: 4, extreme: round % 2 === 0 });
      assert.doesNotThrow(() => JSON.parse(text), JSON.stringify(text));
    }
  });

  const refused: [string, string, RegExp][] = [
    ['two ways to recurse', 'root ::= "a" root "b" | "a" root "c" | ""', /both go on with "a"/],
    ['left recursion', 'root ::= root "a" | "b"', /both go on with "b"/],
    ['hidden left recursion', 'root ::= e root "a" | "b"\ne ::= ""', /both go on with "b"/],
    ['left recursion to nothing', 'root ::= root "a" | ""', /both go on with "a"/],
    ['nothing but recursion', 'root ::= "a" root', /no finite/],
    ['an optional call before another', 'root ::= ("a" root "b")? ("a" root "c")? "d"', /"a"/],
    [
      'a skip before recursion',
      'root ::= [ad]? t\nt ::= "a" root "b" | "d" root "c" | "e"',
      /stay open/,
    ],
    ['two empty alternatives', 'root ::= "(" root ")" | "" | ""', /can be empty|stay open/],
    ['a repetition of what can be empty', 'root ::= ("(" root ")" | "")*', /can be empty/],
    ['spaces that two rules take', 'root ::= "(" ws root ws ")" ws | "a" ws\nws ::= " "*', /" "/],
    ['a rule that is not there', 'root ::= a', /does not define a$/],
    ['no root', 'a ::= "x"', /does not define root/],
    ['one name twice', 'root ::= "a"\nroot ::= "b"', /defines root twice/],
    ['an open text', 'root ::= "a', /line 1/],
    ['an open class', 'root ::= "a"\nb ::= [a', /line 2/],
    ['an open group', 'root ::= ("a"', /can't be read/],
    ['a name of a token', 'root ::= <think>', /can't be read in line 1, at "<think>"/],
    ['a wrong range', 'root ::= [z-a]', /can't be read/],
    ['many repetitions', 'root ::= "a"{0,1001}', /over 1000 times/],
    ['nested repetitions', 'root ::= (("a"{1000}){1000}){1000}', /too complex/],
    ['stacked repetitions', `root ::= "a"${'?'.repeat(100_000)}`, /nested too deeply/],
    [
      'a recursion with many alternatives',
      `root ::= ${Array.from({ length: 161 }, (_, at) => `"${String.fromCodePoint(0x4e00 + at)}" root`).join(' | ')} | "x"`,
      /recurses and has over 160 different characters/,
    ],
    ['deep groups', `root ::= ${'('.repeat(60)}"a"${')'.repeat(60)}`, /nested too deeply/],
    [
      'many rules',
      Array.from({ length: 2001 }, (_, at) => `r${at} ::= "a"`).join('\n'),
      /over 2000/,
    ],
    [
      'rules that double',
      `root ::= r0\n${Array.from({ length: 30 }, (_, at) => `r${at} ::= r${at + 1} r${at + 1}`).join('\n')}\nr30 ::= "a"`,
      /too complex/,
    ],
    ['a long chain of rules', `root ::= r0\n${chain(1001, '"a"').rules}`, /nested too deeply/],
    [
      'a long rule that is read anew for each of many others',
      `root ::= ${chain(500, '').names.join(' ')} | ${'"a" | '.repeat(20_000)} "b"\n${chain(500, '').rules}`,
      /takes too much work/,
    ],
  ];
  for (const [name, source, reason] of refused)
    test(`is refused: ${name}`, () => assert.match(refusalOf(source), reason));

  test('that repeats nothing without end is compiled at once', () => {
    let inner = '""';
    for (let depth = 0; depth < 20; depth++) inner = `(${inner}){1000}`;
    assert(belongs(grammarOf(`root ::= ${inner} "a"`), 'a'));
  });
});

/** Rules of which each is `body` and the next one. */
function chain(count: number, body: string): { names: string[]; rules: string } {
  const names = Array.from({ length: count }, (_, at) => `r${at}`);
  const rules = names.map((name, at) => `${name} ::= ${body} ${names[at + 1] ?? '""'}`);
  return { names, rules: rules.join('\n') };
}
