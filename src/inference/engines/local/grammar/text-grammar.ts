// Grammars for plain text: what matches a regular expression as a whole, and one of several texts.

import { compilePattern } from '#inference/engines/local/grammar/regex/pattern.ts';
import { PatternError } from '#inference/engines/local/grammar/regex/regex.ts';
import { literalsExpression } from '#inference/engines/local/grammar/rules/literals.ts';
import { createRuleBuilder } from '#inference/engines/local/grammar/rules/rule-builder.ts';
import { asText, automatonExpression } from '#inference/engines/local/grammar/rules/strings.ts';

/** Throws an Error whose message says why the pattern can't be used. */
export function toRegexGrammar(pattern: string): string {
  const rules = createRuleBuilder();
  try {
    const automaton = compilePattern(toStrictEscapes(pattern), rules.spend, true);
    return rules.render(rules.add('text', automatonExpression(rules, automaton, asText)));
  } catch (error) {
    throw error instanceof PatternError ? new Error(`the pattern ${error.message}`) : error;
  }
}

/** Python and Rust allow a backslash before any punctuation; ECMAScript's `u` flag does not. */
const toStrictEscapes = (pattern: string) =>
  pattern.replaceAll(/\\([\s\S])/g, (escaped, char: string) =>
    /[ !"#%&',:;<=>@_`~-]/.test(char)
      ? `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`
      : escaped,
  );

export function toChoiceGrammar(texts: readonly string[]): string {
  if (texts.some((text) => text.includes('\0') || !text.isWellFormed()))
    throw new Error('a text has a character that no model can write');
  const rules = createRuleBuilder();
  return rules.render(rules.add('choice', literalsExpression(rules, texts)));
}
