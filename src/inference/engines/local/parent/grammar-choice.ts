// Which grammar a chat request calls for: from the first token, or from the moment the model opens a
// tool call by itself.

import { type Call, EngineError } from '#inference/engine.ts';
import type { ChatRequest, Tool } from '#inference/schema.ts';

export type GrammarRequest =
  | { readonly kind: 'json_object' }
  | { readonly kind: 'json_schema'; readonly schema: unknown }
  /**
   * What a model writes to call one of the tools: `<tool_call>{"name": ..., "arguments": ...}</tool_call>`,
   * opening and closing included; several on lines of their own when `parallel`.
   */
  | {
      readonly kind: 'tool_calls';
      readonly tools: readonly { name: string; parameters: unknown }[];
      readonly parallel: boolean;
    };

/** GBNF, or the reason why the schema can't be expressed: `'properties.a.not' is not supported`. */
export type Compiled = { readonly grammar: string } | { readonly refusal: string };

export type GrammarCaller = Pick<Call, 'caller' | 'priority' | 'signal'>;

/** JSON schemas to GBNF. */
export interface Grammars {
  /** Throws EngineError `overloaded` when too many wait, and the signal's reason when that aborts. */
  compile(request: GrammarRequest, caller: GrammarCaller): Promise<Compiled>;
}

export interface GrammarChoice {
  grammar: string | null;
  lazyGrammar: string | null;
}

const none: GrammarChoice = { grammar: null, lazyGrammar: null };

/** Throws EngineError `rejected`, and what `compile` throws. */
export async function chooseGrammar(
  body: ChatRequest,
  grammars: Grammars,
  caller: GrammarCaller,
): Promise<GrammarChoice> {
  const compile = (request: GrammarRequest) => grammars.compile(request, caller);
  const choice = body.tool_choice ?? 'auto';
  const tools = body.tools ?? [];
  const forced = choice === 'required' || typeof choice === 'object';
  if (forced && tools.length === 0)
    throw refused('tool_choice asks for a call, and there are no tools.', 'tool_choice');
  if (forced) {
    const callable = typeof choice === 'object' ? [findTool(tools, choice.function.name)] : tools;
    return { ...none, grammar: await toolGrammar(callable, body, compile) };
  }
  const format = await formatGrammar(body, compile);
  if (format !== null) return { ...none, grammar: format };
  if (tools.length === 0 || choice === 'none') return none;
  return { ...none, lazyGrammar: await toolGrammar(tools, body, compile) };
}

type Compile = (request: GrammarRequest) => Promise<Compiled>;

async function formatGrammar(body: ChatRequest, compile: Compile): Promise<string | null> {
  const format = body.response_format;
  if (format == null || format.type === 'text') return null;
  const param = 'response_format.json_schema.schema';
  if (format.type === 'json_object')
    return orRefused(await compile({ kind: 'json_object' }), 'response_format');
  const schema = format.json_schema?.schema;
  if (schema == null) throw refused('A json_schema format needs a schema.', param);
  return orRefused(await compile({ kind: 'json_schema', schema }), param);
}

/** Tools that are not strict promise an object only, so a schema that can't be enforced is no obstacle. */
async function toolGrammar(
  tools: readonly Tool[],
  body: ChatRequest,
  compile: Compile,
): Promise<string> {
  // A named tool is called once.
  const parallel = (body.parallel_tool_calls ?? true) && typeof body.tool_choice !== 'object';
  const exact = tools.map(({ function: tool }) => ({
    name: tool.name,
    parameters: tool.parameters ?? { type: 'object', properties: {} },
  }));
  const compiled = await compile({ kind: 'tool_calls', tools: exact, parallel });
  if ('grammar' in compiled || tools.some(({ function: tool }) => tool.strict))
    return orRefused(compiled, 'tools');
  const loose = exact.map(({ name }) => ({ name, parameters: { type: 'object' } }));
  return orRefused(await compile({ kind: 'tool_calls', tools: loose, parallel }), 'tools');
}

function orRefused(compiled: Compiled, param: string): string {
  if ('grammar' in compiled) return compiled.grammar;
  throw refused(`This schema can't be enforced: ${compiled.refusal}`, param);
}

function findTool(tools: readonly Tool[], name: string): Tool {
  const found = tools.find((tool) => tool.function.name === name);
  if (found !== undefined) return found;
  throw refused(`No tool is named "${name}".`, 'tool_choice.function.name');
}

function refused(message: string, param: string): EngineError {
  return new EngineError('rejected', message, { code: 'invalid_value', param });
}
