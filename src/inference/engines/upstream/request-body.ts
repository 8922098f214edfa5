// What is sent upstream: the client's request with the upstream's name for the model. Every other member
// passes on as it came; where a server is known to call one otherwise, it is told so as well.

import {
  memberTexts,
  rawJSON,
  type WithMemberTexts,
  type Written,
  written,
} from '#http/body/json.ts';
import type { Task } from '#inference/engine.ts';
import type { UpstreamServer } from './count-tokens.ts';

export const paths: Record<Task['kind'], string> = {
  chat: '/chat/completions',
  completion: '/completions',
};

/** Streams always ask for usage: what was used is billed whether or not the client wants to see it. */
export function toRequestBody(
  task: Task,
  { model, server }: { model: string; server: UpstreamServer },
  streams: boolean,
): string {
  const { kind, body } = task;
  const sent: Record<string, unknown> = {
    ...body,
    ...toLong(body),
    ...(kind === 'chat' && body.continue_final_message === true && goesOn),
    ...(oldLimits.includes(server) && toOldLimit(task)),
    ...(server === 'llama-server' && toLlamaServer(body)),
    ...(server === 'sglang' && toSglang(body)),
    model,
    // Not every seed of 64 bits can be written from a number.
    seed: typeof body.seed === 'bigint' ? rawJSON(`${body.seed}`) : body.seed,
    stream: streams || undefined,
    stream_options: streams ? { ...body.stream_options, include_usage: true } : undefined,
  };
  // Null means "not given" here, but not to every server.
  for (const name in sent) if (sent[name] === null) sent[name] = undefined;
  return toText(sent, body);
}

/** Members that are sent as they came may have their JSON already: making it again would block the event loop. */
function toText(sent: Record<string, unknown>, body: Task['body'] & WithMemberTexts): string {
  const texts = body[memberTexts];
  if (texts === undefined) return JSON.stringify(sent);
  const came = body as unknown as Record<string, unknown>;
  const members = Object.keys(sent).flatMap((name) => {
    const known = sent[name] === came[name] ? texts.get(name) : undefined;
    const text = known ?? JSON.stringify(sent[name]);
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
  });
  return `{${members.join()}}`;
}

/** Members with more digits than a number holds, as they came. */
function toLong(body: Record<string, unknown> & Written): Record<string, unknown> | null {
  if (body[written] === undefined) return null;
  const long = Object.entries(body[written]);
  const same = long.filter(([name, digits]) => body[name] === Number(digits));
  return Object.fromEntries(same.map(([name, digits]) => [name, rawJSON(digits)]));
}

/** Follows from `continue_final_message`, but not to every server. */
const goesOn = { add_generation_prompt: false };

/** Ollama and older llama-servers know one word for the limit, and would else generate without end. */
const oldLimits: readonly UpstreamServer[] = ['ollama', 'llama-server'];

function toOldLimit({ kind, body }: Task): Record<string, unknown> {
  const limit = kind === 'chat' ? body.max_completion_tokens : null;
  return limit == null ? {} : { max_tokens: limit };
}

/** Its own word for a stop string that stays. */
function toSglang(body: Task['body']): Record<string, unknown> {
  const { include_stop_str_in_output: stays, no_stop_trim } = body as Record<string, unknown>;
  return stays != null && no_stop_trim == null ? { no_stop_trim: stays } : {};
}

/** It ignores its clients' word for a penalty, and takes a function's name for `auto`. */
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
