// Chooses the grammar of a request: from the first token on, or from the moment the model opens a tool call on its own.

import { type Constraint, findConstraint } from '#inference/constraint.ts';
import { EngineError, type Task } from '#inference/engine.ts';
import type {
  CompiledGrammar,
  GrammarCaller,
  GrammarCompiler,
  GrammarRequest,
} from '#inference/engines/local/grammar-thread/grammar-compiler.ts';
import type { ChatRequest, Tool } from '#inference/schema.ts';

export interface GrammarChoice {
  /** Constrains the output from the first token; null for none. */
  grammar: string | null;
  /** Constrains a tool call once the model opens one; null for none. */
  lazyGrammar: string | null;
}

const noGrammar: GrammarChoice = { grammar: null, lazyGrammar: null };

/** Throws EngineError `rejected`, and what `compile` throws. */
export async function chooseGrammar(
  { kind, body }: Task,
  compiler: GrammarCompiler,
  caller: GrammarCaller,
): Promise<GrammarChoice> {
  const compile = (request: GrammarRequest) => compiler.compile(request, caller);
  const constraint = findConstraint(body);
  if (kind === 'completion')
    return { ...noGrammar, grammar: constraint && (await toGrammar(constraint, compile)) };
  const choice = body.tool_choice ?? 'auto';
  const tools = body.tools ?? [];
  const forced = choice === 'required' || typeof choice === 'object';
  if (forced && tools.length === 0)
    throw refused('tool_choice demands a tool call, but tools is empty.', 'tool_choice');
  if (forced) {
    const callable = typeof choice === 'object' ? [findTool(tools, choice.function.name)] : tools;
    return { ...noGrammar, grammar: await toolGrammar(callable, body, compile) };
  }
  if (constraint !== null) return { ...noGrammar, grammar: await toGrammar(constraint, compile) };
  if (tools.length === 0 || choice === 'none') return noGrammar;
  return { ...noGrammar, lazyGrammar: await toolGrammar(tools, body, compile) };
}

type Compile = (request: GrammarRequest) => Promise<CompiledGrammar>;

async function toGrammar(constraint: Constraint, compile: Compile): Promise<string> {
  if (constraint.kind === 'structural_tag') throw unsupported(constraint.param);
  const { param, ...request } = constraint;
  return orRefused(await compile(request), param);
}

/** For tools that are not strict, a schema that can't be enforced is replaced by any object. */
async function toolGrammar(
  tools: readonly Tool[],
  body: ChatRequest,
  compile: Compile,
): Promise<string> {
  // A tool named by tool_choice is called once.
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

function orRefused(compiled: CompiledGrammar, param: string): string {
  if ('grammar' in compiled) return compiled.grammar;
  throw refused(`${param} can't be enforced: ${compiled.refusal}.`, param);
}

function findTool(tools: readonly Tool[], name: string): Tool {
  const found = tools.find((tool) => tool.function.name === name);
  if (found !== undefined) return found;
  throw refused(
    `tool_choice names the tool "${name}", which is not in tools.`,
    'tool_choice.function.name',
  );
}

function refused(message: string, param: string): EngineError {
  return new EngineError('rejected', message, { code: 'invalid_value', param });
}

export const unsupported = (param: string) =>
  new EngineError(
    'rejected',
    `Models on this computer can't enforce ${param}. Use a JSON schema, a regex, a choice or a grammar.`,
    { code: 'unsupported_parameter', param },
  );
