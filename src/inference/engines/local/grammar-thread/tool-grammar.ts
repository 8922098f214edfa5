// A grammar for tool calls in the form of the built-in model's template, Hermes and Qwen: a JSON object with name and
// arguments between two tags. The built-in model writes no newlines inside the tags; the others do.

import { choice, rule, sequence, text } from '#inference/engines/local/grammar/rules/gbnf.ts';
import { createRuleBuilder } from '#inference/engines/local/grammar/rules/rule-builder.ts';
import {
  join,
  UnsupportedSchema,
} from '#inference/engines/local/grammar/schema/unsupported-schema.ts';
import { compileSchema } from '#inference/engines/local/grammar/schema-compiler.ts';
import { toolCallClosing, toolCallOpening } from '#inference/engines/local/protocol.ts';

const maxCalls = 16;

interface CallableTool {
  readonly name: string;
  /** A schema of an object. If absent, the tool takes no arguments. */
  readonly parameters?: unknown;
}

/**
 * `parallel` allows up to 16 calls, one after another, instead of one. Throws UnsupportedSchema;
 * its `path` starts with the name of the tool.
 */
export function toToolGrammar(
  tools: readonly CallableTool[],
  { parallel }: { readonly parallel: boolean },
): string {
  const rules = createRuleBuilder();
  const newline = rules.add('newline', text('\n'));
  const gap = rules.repeat(newline, 0, 1);
  const calls = tools.map(({ name, parameters }) => {
    const head = text(`{"name": ${JSON.stringify(name)}, "arguments": `);
    return sequence(head, rule(compileParameters(name, parameters)), text('}'));
  });

  function compileParameters(name: string, parameters: unknown): string {
    try {
      return compileSchema(rules, parameters ?? { properties: {} }, { type: 'object' });
    } catch (error) {
      if (!(error instanceof UnsupportedSchema)) throw error;
      throw new UnsupportedSchema(join(name, error.location), error.keyword, error.reason);
    }
  }

  const rest = rules.add(
    'call',
    sequence(gap, rule(rules.add('body', choice(calls))), gap, text(toolCallClosing)),
  );
  const further = rules.add('further', sequence(text(`\n${toolCallOpening}`), rule(rest)));
  const more = parallel ? [rules.repeat(further, 0, maxCalls - 1)] : [];
  return rules.render(rules.add('calls', sequence(text(toolCallOpening), rule(rest), ...more)));
}
