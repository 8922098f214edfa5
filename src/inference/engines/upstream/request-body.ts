// Builds the upstream request: the client's request with the upstream's name for the model. Members that a client must
// not set are left out, and all others are passed on unchanged. If a server is known to use another name for a member,
// that one is set as well or instead.

import {
  memberTexts,
  rawIntegers,
  rawJSON,
  type WithMemberTexts,
  type WithRawIntegers,
} from '#http/body/json.ts';
import type { OutgoingBody } from '#http/client/client-connection.ts';
import { constraintMembers, findConstraint } from '#inference/constraint.ts';
import type { Task } from '#inference/engine.ts';
import { heldBack } from '#inference/schema.ts';
import { cannotEnforce, toConstraintMembers } from './constraint-members.ts';
import type { UpstreamServer } from './servers.ts';

export const paths: Record<Task['kind'], string> = {
  chat: '/chat/completions',
  completion: '/completions',
};

/**
 * Streams always request usage, because it is billed whether or not the client wants to see it. Throws EngineError if
 * the server can't enforce the form that the output must have.
 */
export function toRequestBody(
  task: Task,
  { model, server, url }: { model: string; server: UpstreamServer; url: string },
  streams: boolean,
): OutgoingBody {
  const { kind, body } = task;
  const sent: Record<string, unknown> = {
    ...body,
    ...toLong(body),
    ...(kind === 'chat' && body.continue_final_message === true && continuesMessage),
    ...toOldLimit(task, server, url),
    ...(server === 'llama-server' && toLlamaServer(body)),
    ...(server === 'sglang' && toSglang(body)),
    ...toConstrained(task, server),
    model,
    ...withoutHeldBack,
    vllm_xargs: toArguments((body as Record<string, unknown>).vllm_xargs),
    // A number can't represent every 64-bit seed.
    seed: typeof body.seed === 'bigint' ? rawJSON(`${body.seed}`) : body.seed,
    stream: streams || undefined,
    stream_options: streams ? { ...body.stream_options, include_usage: true } : undefined,
  };
  // Null means "not set" here, but not to every server.
  for (const name in sent) if (sent[name] === null) sent[name] = undefined;
  return toJson(sent, body);
}

/** The members of all dialects, of which only those stay that the server knows. */
function toConstrained(task: Task, server: UpstreamServer): Record<string, unknown> | null {
  const constraint = findConstraint(task.body);
  if (constraint === null) return null;
  const members = toConstraintMembers(server, task, constraint);
  if (members === null) throw cannotEnforce(constraint, server);
  return { ...Object.fromEntries(constraintMembers.map((name) => [name, undefined])), ...members };
}

/**
 * Members that are passed on unchanged may have their JSON already; serializing them again would block the event
 * loop.
 */
function toJson(sent: Record<string, unknown>, body: Task['body'] & WithMemberTexts): OutgoingBody {
  const texts = body[memberTexts];
  if (texts === undefined) return JSON.stringify(sent);
  const pieces: Uint8Array[] = [];
  let short = '';
  for (const name of Object.keys(sent)) {
    const long = texts.get(sent[name]);
    const text = long === undefined ? JSON.stringify(sent[name]) : '';
    if (text === undefined) continue;
    short += `${pieces.length === 0 && short === '' ? '{' : ','}${JSON.stringify(name)}:${text}`;
    if (long === undefined) continue;
    pieces.push(Buffer.from(short), long);
    short = '';
  }
  pieces.push(Buffer.from(`${short}}`));
  return pieces;
}

/** Members with more digits than a number can hold, exactly as the client wrote them. */
function toLong(body: Record<string, unknown> & WithRawIntegers): Record<string, unknown> | null {
  if (body[rawIntegers] === undefined) return null;
  const long = Object.entries(body[rawIntegers]);
  const same = long.filter(([name, digits]) => body[name] === Number(digits));
  return Object.fromEntries(same.map(([name, digits]) => [name, rawJSON(digits)]));
}

const withoutHeldBack = Object.fromEntries(heldBack.map((name) => [name, undefined]));

const toArguments = (given: unknown) =>
  typeof given === 'object' && given !== null ? { ...given, ...withoutHeldBack } : undefined;

/** Implied by `continue_final_message`, but not on every server. */
const continuesMessage = { add_generation_prompt: false };

/**
 * Ollama, older llama-servers and many others know only `max_tokens`, and would otherwise generate without end. OpenAI
 * itself refuses requests that have both.
 */
function toOldLimit({ kind, body }: Task, server: UpstreamServer, url: string) {
  const limit = kind === 'chat' ? body.max_completion_tokens : null;
  if (limit == null || server === 'vllm' || server === 'sglang') return null;
  return server === 'openai' && openAi.test(url) ? null : { max_tokens: limit };
}

const openAi = /^https:\/\/([^/]+\.)?openai\.(azure\.)?com[:/]/i;

/** Sets SGLang's own member for keeping the stop string in the output. */
function toSglang(body: Task['body']): Record<string, unknown> {
  const { include_stop_str_in_output: stays, no_stop_trim } = body as Record<string, unknown>;
  return stays != null && no_stop_trim == null ? { no_stop_trim: stays } : {};
}

/** llama-server ignores `repetition_penalty`, and treats a `tool_choice` that names a function as `auto`. */
function toLlamaServer(body: Task['body']): Record<string, unknown> {
  const { repetition_penalty, repeat_penalty } = body as Record<string, unknown>;
  const penalty = repetition_penalty != null && repeat_penalty == null;
  const choice = 'tool_choice' in body ? body.tool_choice : null;
  const name = typeof choice === 'object' ? choice?.function.name : undefined;
  const tools = 'tools' in body ? body.tools?.filter((tool) => tool.function.name === name) : [];
  return {
    ...(penalty && { repeat_penalty: repetition_penalty }),
    ...(name !== undefined && { tools, tool_choice: 'required' }),
  };
}
