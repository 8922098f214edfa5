// Every tool of a request as a function that any engine can call, and which tool a called function
// stands for. Tools that OpenAI hosts are left out: there is nothing here to run them.

import { createHash } from 'node:crypto';
import type { ResponseTool, ResponseToolChoice } from '#inference/apis/responses/schema.ts';
import { type InferenceError, invalidValue, missingParameter } from '#inference/errors.ts';
import type { ChatRequest, Tool } from '#inference/schema.ts';
import { toPattern } from './lark.ts';

/** A tool as the client knows it. */
export interface ClientTool {
  readonly kind: 'function' | 'custom' | 'local_shell' | 'tool_search';
  readonly name: string;
  /** Undefined for tools outside of namespaces. */
  readonly namespace?: string | undefined;
}

export interface ToolSet {
  /** The functions that the engine sees. */
  readonly functions: readonly Tool[];
  /** The tool that a called function stands for. An unknown function is a function of that name. */
  find(functionName: string): ClientTool;
  /** The name of the function that stands for a tool, also for one that is no longer in the request. */
  toFunctionName(tool: ClientTool): string;
  has(tool: ClientTool): boolean;
}

export function createToolSet(tools: readonly ResponseTool[]): ToolSet {
  const functions: Tool[] = [];
  const byFunction = new Map<string, ClientTool>();
  const byKey = new Map<string, string>();
  let grammars = 0;

  function add(tool: ResponseTool, place: string, namespace?: string): void {
    // Namespaces don't nest: what is inside of two was not checked.
    if (tool.type === 'namespace' && namespace === undefined) {
      for (const [index, one] of (tool.tools ?? []).entries())
        add(one, `${place}.tools[${index}]`, toName(tool, place));
      return;
    }
    if (tool.format?.type === 'grammar') grammars++;
    const known = toFunction(tool, place, grammars <= maxPatterns);
    if (known === null) return;
    const client: ClientTool = { ...known.client, namespace };
    // A search may find a tool that is there already.
    if (byKey.has(toKey(client))) return;
    const plain = toPlainName(client);
    const name = byFunction.has(plain) ? toHashedName(client) : plain;
    byFunction.set(name, client);
    byKey.set(toKey(client), name);
    functions.push({ type: 'function', function: { ...known.definition, name } });
  }

  for (const [index, tool] of tools.entries()) add(tool, `tools[${index}]`);
  return {
    functions,
    find: (name) => byFunction.get(name) ?? findInner(name) ?? { kind: 'function', name },
    toFunctionName: (tool) => byKey.get(toKey(tool)) ?? toPlainName(tool),
    has: (tool) => byKey.has(toKey(tool)),
  };

  /** Models leave out the namespace of a tool now and then. */
  function findInner(name: string): ClientTool | undefined {
    const inner = [...byFunction.values()].filter((tool) => tool.name === name);
    return inner.length === 1 ? inner[0] : undefined;
  }
}

interface Known {
  readonly client: ClientTool;
  readonly definition: Omit<Tool['function'], 'name'>;
}

/** Grammars of a request that become patterns. Each may be a hundred times as long as its grammar. */
const maxPatterns = 32;

/** Null for a tool that can't be called here. */
function toFunction(tool: ResponseTool, place: string, mayHavePattern: boolean): Known | null {
  const { description, parameters, strict } = tool;
  switch (tool.type) {
    case 'function':
      return {
        client: { kind: 'function', name: toName(tool, place) },
        definition: {
          ...(description != null && { description }),
          ...(parameters != null && { parameters }),
          ...(strict != null && { strict }),
        },
      };
    case 'custom':
      return {
        client: { kind: 'custom', name: toName(tool, place) },
        definition: toCustomDefinition(tool, mayHavePattern),
      };
    case 'local_shell':
      return { client: { kind: 'local_shell', name: 'local_shell' }, definition: shellDefinition };
    case 'tool_search':
      // Without a client that searches, all tools are loaded from the start.
      if (tool.execution !== 'client') return null;
      return {
        client: { kind: 'tool_search', name: 'tool_search' },
        definition: {
          description: description ?? 'Finds further tools and makes them available.',
          parameters: parameters ?? searchParameters,
        },
      };
    default:
      return null;
  }
}

function toName({ name }: ResponseTool, place: string): string {
  if (name == null) throw missingParameter(`${place}.name`);
  return name;
}

/**
 * A custom tool takes text, which is the only argument of its function. A regular expression, or a
 * grammar that is one, is a pattern of the schema, which engines enforce if they can. Both are
 * explained to the model.
 */
function toCustomDefinition(
  { description, format }: ResponseTool,
  mayHavePattern: boolean,
): Known['definition'] {
  const definition = format?.type === 'grammar' ? (format.definition ?? '') : '';
  const find = format?.syntax === 'regex' ? toRegex : toPattern;
  const pattern = mayHavePattern && definition !== '' ? find(definition) : null;
  const words =
    definition === ''
      ? ''
      : `The input must match this ${format?.syntax === 'regex' ? 'regular expression' : 'Lark grammar'}:\n${definition}`;
  return {
    description: [description ?? '', words].filter((text) => text !== '').join('\n\n'),
    parameters: {
      type: 'object',
      properties: {
        input: {
          type: 'string',
          description: 'The input of the tool, as plain text.',
          ...(pattern !== null && { pattern: `^(?:${pattern})$` }),
        },
      },
      required: ['input'],
      additionalProperties: false,
    },
  };
}

function toRegex(text: string): string | null {
  try {
    new RegExp(text, 'u');
    return text;
  } catch {
    return null;
  }
}

const shellDefinition: Known['definition'] = {
  description: 'Runs a command on the computer of the user and returns its output.',
  parameters: {
    type: 'object',
    properties: {
      command: {
        type: 'array',
        items: { type: 'string' },
        description: 'The program and its arguments, such as ["bash", "-lc", "ls"].',
      },
      working_directory: { type: 'string' },
      timeout_ms: { type: 'integer' },
    },
    required: ['command'],
  },
};

const searchParameters = {
  type: 'object',
  properties: { query: { type: 'string', description: 'What the tool should do.' } },
  required: ['query'],
};

const toKey = ({ kind, namespace, name }: ClientTool) => JSON.stringify([kind, namespace, name]);

/** Functions have names of at most 64 letters, digits, underscores and dashes. */
function toPlainName(tool: ClientTool): string {
  const { namespace, name } = tool;
  const gap = namespace?.endsWith('__') ? '' : '__';
  const joined = namespace === undefined ? name : `${namespace}${gap}${name}`;
  return /^[a-zA-Z0-9_-]{1,64}$/.test(joined) ? joined : toHashedName(tool);
}

function toHashedName(tool: ClientTool): string {
  const hash = createHash('sha256').update(toKey(tool)).digest('hex').slice(0, 8);
  const { namespace = '', name } = tool;
  const readable = `${namespace}_${name}`.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(-55);
  return `${readable}_${hash}`;
}

type ChatTools = Pick<ChatRequest, 'tools' | 'tool_choice' | 'parallel_tool_calls'>;

/** The members of a chat that say which functions may be called. Throws InferenceError. */
export function toChatTools(
  set: ToolSet,
  given: readonly ResponseTool[],
  choice: ResponseToolChoice | null,
  parallel: boolean | null,
): ChatTools {
  const isAllowed = typeof choice === 'object' && choice?.type === 'allowed_tools';
  const tools = isAllowed
    ? set.functions.filter((tool) => isListed(set, tool, choice?.tools ?? []))
    : set.functions;
  const asked = isAllowed ? (choice?.mode ?? 'auto') : choice;
  if (typeof asked === 'object' && asked !== null) {
    return { ...toMembers(tools, parallel), tool_choice: toNamed(set, asked) };
  }
  if (tools.length > 0) {
    return { ...toMembers(tools, parallel), ...(asked !== null && { tool_choice: asked }) };
  }
  // A choice without tools means nothing. With hosted tools alone, it insists on one of them.
  if (asked === 'required' && given.length > 0) throw hosted(given[0]?.type ?? '');
  return {};
}

const toMembers = (tools: readonly Tool[], parallel: boolean | null): ChatTools => ({
  tools: [...tools],
  ...(parallel !== null && { parallel_tool_calls: parallel }),
});

function isListed(set: ToolSet, tool: Tool, listed: readonly { type: string }[]): boolean {
  const { kind, name, namespace } = set.find(tool.function.name);
  return (listed as readonly ResponseTool[]).some((one) =>
    one.type === 'namespace'
      ? one.name === namespace
      : one.type === kind && (one.name ?? name) === name,
  );
}

function toNamed(
  set: ToolSet,
  { type, name, namespace }: Exclude<ResponseToolChoice, string>,
): NonNullable<ChatRequest['tool_choice']> {
  if (type === 'namespace') return 'required';
  if (!isKind(type)) throw hosted(type);
  const isNamed = type === 'function' || type === 'custom';
  if (isNamed && name == null) throw missingParameter('tool_choice.name');
  const asked: ClientTool = { kind: type, name: name ?? type, namespace: namespace ?? undefined };
  const called = set.has(asked) ? asked : set.find(asked.name);
  if (called.kind !== type || !set.has(called)) {
    throw invalidValue('tool_choice', 'tool_choice names a tool that is not in tools.');
  }
  return { type: 'function', function: { name: set.toFunctionName(called) } };
}

const isKind = (type: string): type is ClientTool['kind'] =>
  ['function', 'custom', 'local_shell', 'tool_search'].includes(type);

const hosted = (type: string): InferenceError =>
  invalidValue(
    'tool_choice',
    `tool_choice insists on ${JSON.stringify(type.slice(0, 40))}, which this server does not run. Offer a function instead, or leave tool_choice out.`,
  );
