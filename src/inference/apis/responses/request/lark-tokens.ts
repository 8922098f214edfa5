// The tokens of a Lark grammar, with its texts and terminals as sources of regular expressions.

export interface Token {
  readonly kind: 'definition' | 'name' | 'source' | 'quantifier' | 'mark' | 'import';
  readonly text: string;
}

/** With the spaces, comments and names of alternatives between tokens. */
const maxTokens = 8_192;

/** What each form of a token is; null for what has no meaning here. The first that matches counts. */
const forms: readonly [RegExp, (found: RegExpExecArray) => Token | null][] = [
  [/^(?:\s|\/\/[^\n]*)+/, () => null],
  [/^%import\s+common\.?([^\n]*)/, ([, text = '']) => ({ kind: 'import', text })],
  // The name of an alternative.
  [/^->\s*\w+/, () => null],
  [/^[?!]?(\w+)(?:\.-?\d+)?\s*:/, ([, text = '']) => ({ kind: 'definition', text })],
  [/^"([^"\\\n])"\s*\.\.\s*"([^"\\\n])"/, ([, from = '', to = '']) => toRange(from, to)],
  [
    /^"(?:[^"\\\n]|\\.)*"(?!i)/,
    ([text]) => ({ kind: 'source', text: escapeText(JSON.parse(text)) }),
  ],
  [/^\/((?:[^/\\\n]|\\.)+)\/(?![a-z])/, ([, text]) => ({ kind: 'source', text: `(${text})` })],
  [/^~\s*(\d+)\s*\.\.\s*(\d+)/, ([, min, max]) => toQuantifier(`{${min},${max}}`)],
  [/^~\s*(\d+)/, ([, count]) => toQuantifier(`{${count}}`)],
  [/^[?*+]/, ([text]) => toQuantifier(text)],
  [/^\w+/, ([text]) => ({ kind: 'name', text })],
  [/^[|()[\]]/, ([text]) => ({ kind: 'mark', text })],
];

/** Null if the grammar has something that is not supported. */
export function tokenize(grammar: string): Token[] | null {
  const tokens: (Token | null)[] = [];
  for (let at = 0; at < grammar.length; ) {
    const found = findForm(grammar, at);
    if (found === null || tokens.length > maxTokens) return null;
    tokens.push(found.token);
    at = found.end;
  }
  return tokens.filter((token) => token !== null);
}

function findForm(grammar: string, at: number): { token: Token | null; end: number } | null {
  const rest = grammar.slice(at);
  for (const [form, toToken] of forms) {
    const found = form.exec(rest);
    if (found !== null) return { token: toToken(found), end: at + found[0].length };
  }
  return null;
}

const toQuantifier = (text: string): Token => ({ kind: 'quantifier', text });

const toRange = (from: string, to: string): Token => ({
  kind: 'source',
  text: `[${escapeEnd(from)}-${escapeEnd(to)}]`,
});

/** The end of a range. */
const escapeEnd = (character: string) => character.replace(/[\\^\]-]/, '\\$&');

const escapeText = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&');

/** Terminals that Lark brings. */
const common: Readonly<Record<string, string>> = {
  DIGIT: '[0-9]',
  HEXDIGIT: '[0-9a-fA-F]',
  INT: '[0-9]+',
  SIGNED_INT: '[+\\-]?[0-9]+',
  DECIMAL: '([0-9]+\\.[0-9]*|\\.[0-9]+)',
  NUMBER: '([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+\\-]?[0-9]+)?',
  ESCAPED_STRING: '"([^"\\\\\\n]|\\\\[^\\n])*"',
  LCASE_LETTER: '[a-z]',
  UCASE_LETTER: '[A-Z]',
  LETTER: '[a-zA-Z]',
  WORD: '[a-zA-Z]+',
  CNAME: '[a-zA-Z_][a-zA-Z_0-9]*',
  WS_INLINE: '[ \\t]+',
  WS: '[ \\t\\f\\r\\n]+',
  CR: '\\r',
  LF: '\\n',
  NEWLINE: '(\\r?\\n)+',
};

/** The names and sources that an import brings: `common.LF`, `common.INT -> COUNT` or `common (WS, LF)`. */
export function toSource(imported: string): [name: string, source: string][] | null {
  const [, list, only, alias] =
    /^\s*(?:\(([\w\s,]+)\)|(\w+)(?:\s*->\s*(\w+))?)\s*$/.exec(imported) ?? [];
  const names = only === undefined ? (list ?? '').split(',').map((name) => name.trim()) : [only];
  const found = names.map((name): [string, string] => [alias ?? name, `(${common[name] ?? ''})`]);
  return found.some(([, source]) => source === '()') ? null : found;
}
