// How many tokens a prompt has, asked of the server that knows. vLLM and SGLang count at `/tokenize`,
// llama-server after writing the prompt at `/apply-template`. Others can't be asked.

import type { Cancellation } from '#http/client-disconnect.ts';
import { type Task, toGivenPrompts } from '#inference/engine.ts';
import type { CompletionRequest } from '#inference/schema.ts';
import { ask, type WholeAnswer } from './buffered-response.ts';
import type { Connection, Send } from './connection.ts';
import { toFailure, unavailable } from './failures.ts';

export type UpstreamServer = 'vllm' | 'sglang' | 'llama-server' | 'ollama' | 'openai';

/** Those that can be asked how many tokens a text has. */
export const countingServers: readonly UpstreamServer[] = ['vllm', 'sglang', 'llama-server'];

/** Whoever waits for it has its answer already, or is in the middle of it. */
const longestWaitMs = 2000;

type Ask = (path: string, body: object) => Promise<Record<string, unknown>>;

/** These stand beside `/v1`, not below it. */
const toAsk =
  (connection: Connection, signal: Cancellation, toError: (answer: WholeAnswer) => Error): Ask =>
  async (path, body) => {
    const what: Send = { method: 'POST', path, root: true, body: JSON.stringify(body), signal };
    const answer = await ask(connection, what);
    if (answer.status !== 200) throw toError(answer);
    return parse(answer.text);
  };

const doesNotCount = () => unavailable('does not count tokens');

export async function countPromptTokens(
  connection: Connection,
  { server, model }: { server: UpstreamServer; model: string },
  task: Task,
  signal: Cancellation,
): Promise<number | null> {
  const post = toAsk(connection, signal, ({ status, headers, text }) =>
    toFailure(status, headers, text, task),
  );
  if (task.kind === 'chat') {
    const { messages, tools, add_generation_prompt, continue_final_message } = task.body;
    const { chat_template_kwargs } = task.body as { chat_template_kwargs?: unknown };
    const template = {
      messages,
      ...(tools && { tools }),
      ...(chat_template_kwargs != null && { chat_template_kwargs }),
    };
    if (server === 'llama-server') {
      const { prompt } = await post('/apply-template', template);
      return countText(post, server, model, String(prompt));
    }
    if (server !== 'vllm' && server !== 'sglang') return null;
    const { tool_choice } = task.body;
    const { reasoning_effort } = task.body as { reasoning_effort?: unknown };
    // SGLang refuses `add_generation_prompt` beside `continue_final_message`, and its chats ignore it.
    const own = server === 'vllm' ? { add_generation_prompt } : { tool_choice, reasoning_effort };
    const more = Object.entries({ ...own, continue_final_message });
    const given = Object.fromEntries(more.filter(([, value]) => value != null));
    return toCount(await post('/tokenize', { model, ...template, ...given }));
  }
  let most = 0;
  // Several prompts are several sequences: the longest one decides.
  for (const one of toGivenPrompts(task.body)) {
    const count = typeof one !== 'string' ? one.length : await countText(post, server, model, one);
    if (count === null) return null;
    most = Math.max(most, count);
  }
  return most;
}

/** How many tokens a server has room for after a text, or the longest of several; null where there is none. */
export async function readRoom(
  connection: Connection,
  { server, model }: { server: UpstreamServer; model: string },
  body: CompletionRequest,
  signal: Cancellation,
): Promise<number | null> {
  const post = toAsk(connection, signal, doesNotCount);
  const prompts = toGivenPrompts(body);
  const texts = prompts.filter((one) => typeof one === 'string');
  let most = Math.max(0, ...prompts.map((one) => (typeof one === 'string' ? 0 : one.length)));
  let window = 0;
  // Any text is answered with the window.
  for (const prompt of texts.length > 0 ? texts : ['?']) {
    const { count, max_model_len } = await post('/tokenize', { model, prompt });
    if (typeof count !== 'number' || typeof max_model_len !== 'number') throw doesNotCount();
    if (texts.length > 0) most = Math.max(most, count);
    window = max_model_len;
  }
  const { truncate_prompt_tokens: kept } = body as { truncate_prompt_tokens?: unknown };
  const taken = typeof kept === 'number' && kept > 0 ? Math.min(most, kept) : most;
  // Some versions of SGLang refuse what fills it.
  const room = window - taken - (server === 'sglang' ? 1 : 0);
  return room > 0 ? room : null;
}

/** Of a text that a model wrote; null where it can't be told. Never fails. */
export async function countTextTokens(
  connection: Connection,
  { server, model }: { server: UpstreamServer; model: string },
  text: string,
): Promise<number | null> {
  const post = toAsk(connection, AbortSignal.timeout(longestWaitMs), doesNotCount);
  const count = await countText(post, server, model, text, false).catch(() => null);
  // A token that the model wrote is at least one byte.
  return count === null || count > Buffer.byteLength(text) ? null : count;
}

/** With what begins every prompt, unless it is no prompt. */
async function countText(
  post: Ask,
  server: UpstreamServer,
  model: string,
  text: string,
  isPrompt = true,
): Promise<number | null> {
  const bare = isPrompt ? {} : { add_special_tokens: false };
  if (server === 'vllm' || server === 'sglang')
    return toCount(await post('/tokenize', { model, prompt: text, ...bare }));
  if (server !== 'llama-server') return null;
  const { tokens } = await post('/tokenize', {
    content: text,
    add_special: isPrompt,
    parse_special: isPrompt,
  });
  return toCount({ tokens });
}

function toCount({ count, tokens }: Record<string, unknown>): number {
  if (typeof count === 'number' && Number.isSafeInteger(count) && count >= 0) return count;
  if (Array.isArray(tokens)) return tokens.length;
  throw unavailable('did not say how many tokens there are');
}

function parse(text: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null) return parsed as Record<string, unknown>;
  } catch {}
  throw unavailable('counted in something other than JSON');
}
