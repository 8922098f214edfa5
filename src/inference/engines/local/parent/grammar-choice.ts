// Which grammar a chat request calls for: from the first token, or from the moment the model opens a
// tool call by itself.

import { EngineError } from '#inference/engine.ts';
import type { ChatRequest, Tool } from '#inference/schema.ts';

/** JSON schemas to GBNF. Each may throw for a schema that it can't express. */
export interface Grammars {
  jsonObject(): string;
  jsonSchema(schema: unknown): string;
  /**
   * What a model writes to call one of the tools: `<tool_call>{"name": ..., "arguments": ...}</tool_call>`,
   * opening and closing included; several on lines of their own when `parallel`.
   */
  toolCalls(tools: { name: string; parameters: unknown }[], options: { parallel: boolean }): string;
}

export interface GrammarChoice {
  grammar: string | null;
  lazyGrammar: string | null;
}

const none: GrammarChoice = { grammar: null, lazyGrammar: null };

/** Throws EngineError `rejected`. */
export function chooseGrammar(body: ChatRequest, grammars: Grammars): GrammarChoice {
  const choice = body.tool_choice ?? 'auto';
  const tools = body.tools ?? [];
  const forced = choice === 'required' || typeof choice === 'object';
  if (forced && tools.length === 0)
    throw refused('tool_choice asks for a call, and there are no tools.', 'tool_choice');
  if (forced) {
    const callable = typeof choice === 'object' ? [findTool(tools, choice.function.name)] : tools;
    return { ...none, grammar: toolGrammar(callable, body, grammars) };
  }
  const format = formatGrammar(body, grammars);
  if (format !== null) return { ...none, grammar: format };
  if (tools.length === 0 || choice === 'none') return none;
  return { ...none, lazyGrammar: toolGrammar(tools, body, grammars) };
}

function formatGrammar(body: ChatRequest, grammars: Grammars): string | null {
  const format = body.response_format;
  if (format == null || format.type === 'text') return null;
  if (format.type === 'json_object') return grammars.jsonObject();
  const schema = format.json_schema?.schema;
  if (schema == null)
    throw refused('A json_schema format needs a schema.', 'response_format.json_schema.schema');
  try {
    return grammars.jsonSchema(schema);
  } catch (error) {
    throw unenforceable(error, 'response_format.json_schema.schema');
  }
}

/** Tools that are not strict promise an object only, so a schema that can't be enforced is no obstacle. */
function toolGrammar(tools: readonly Tool[], body: ChatRequest, grammars: Grammars): string {
  // A named tool is called once.
  const parallel = (body.parallel_tool_calls ?? true) && typeof body.tool_choice !== 'object';
  const exact = tools.map(({ function: tool }) => ({
    name: tool.name,
    parameters: tool.parameters ?? { type: 'object', properties: {} },
  }));
  try {
    return grammars.toolCalls(exact, { parallel });
  } catch (error) {
    if (tools.some(({ function: tool }) => tool.strict)) throw unenforceable(error, 'tools');
    const loose = exact.map(({ name }) => ({ name, parameters: { type: 'object' } }));
    return grammars.toolCalls(loose, { parallel });
  }
}

function findTool(tools: readonly Tool[], name: string): Tool {
  const found = tools.find((tool) => tool.function.name === name);
  if (found !== undefined) return found;
  throw refused(`No tool is named "${name}".`, 'tool_choice.function.name');
}

function unenforceable(error: unknown, param: string): EngineError {
  if (error instanceof EngineError) return error;
  return refused(`This schema can't be enforced: ${(error as Error).message}`, param);
}

function refused(message: string, param: string): EngineError {
  return new EngineError('rejected', message, { code: 'invalid_value', param });
}
