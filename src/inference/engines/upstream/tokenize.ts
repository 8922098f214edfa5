// Tokens of a text or a conversation, their number, and the text of tokens, by the server's own
// tokenizer. vLLM and SGLang have one form of `/tokenize`; llama-server has its own, and renders
// prompts at `/apply-template`. Other servers have neither.

import type { Cancellation } from '#http/client-disconnect.ts';
import { type Engine, type Task, toGivenPrompts } from '#inference/engine.ts';
import {
  type BufferedResponse,
  fetchWhole,
} from '#inference/engines/upstream/plain/buffered-response.ts';
import type { TokenizeTask, Tokens } from '#inference/pooling.ts';
import type { ChatRequest, CompletionRequest } from '#inference/schema.ts';
import { toFailure, unavailable } from './failures.ts';
import type { UpstreamServer } from './servers.ts';
import type { SendOptions, UpstreamClient } from './upstream-client.ts';

type Tokenizer = Pick<Engine, 'tokenize' | 'detokenize'>;

/** Empty for servers that have no such endpoint. */
export function createTokenizer(
  client: UpstreamClient,
  { server, model }: { server: UpstreamServer; model: string },
): Tokenizer {
  if (server === 'ollama' || server === 'openai') return {};
  const toPost = (signal: Cancellation) =>
    toPostJson(client, signal, ({ status, headers, text }) =>
      toFailure(status, headers, text, { kind: 'pooling', body: {} }),
    );
  return {
    tokenize: (task, signal) =>
      server === 'llama-server'
        ? tokenizeByLlamaServer(toPost(signal), task)
        : tokenize(toPost(signal), server, model, task),
    async detokenize(tokens, signal) {
      const given = await toPost(signal)('/detokenize', { model, tokens });
      const text = given.prompt ?? given.text ?? given.content;
      if (typeof text !== 'string') throw unavailable('did not return the text of tokens');
      return text;
    },
  };
}

async function tokenize(
  post: PostJson,
  server: 'vllm' | 'sglang',
  model: string,
  { source, addsSpecial, withTexts }: TokenizeTask,
): Promise<Tokens> {
  const text = 'chat' in source ? toTemplated(server, source.chat) : { prompt: source.prompt };
  const { tokens, token_strs } = await post('/tokenize', {
    model,
    ...text,
    add_special_tokens: addsSpecial,
    ...(withTexts && { return_token_strs: true }),
  });
  return { tokens: toIds(tokens), texts: withTexts ? toTexts(token_strs) : null };
}

async function tokenizeByLlamaServer(
  post: PostJson,
  { source, addsSpecial, withTexts }: TokenizeTask,
): Promise<Tokens> {
  const content = 'chat' in source ? await applyTemplate(post, source.chat) : source.prompt;
  const { tokens } = await post('/tokenize', {
    content,
    add_special: addsSpecial,
    parse_special: true,
    ...(withTexts && { with_pieces: true }),
  });
  if (!withTexts || !Array.isArray(tokens)) return { tokens: toIds(tokens), texts: null };
  const pieces = tokens as { id?: unknown; piece?: unknown }[];
  const ids = toIds(pieces.map((piece) => piece?.id));
  // A token that is not valid UTF-8 comes as its bytes.
  const texts = pieces.map(({ piece }) =>
    typeof piece === 'string' ? piece : Buffer.from(toIds(piece)).toString(),
  );
  return { tokens: ids, texts };
}

function toIds(given: unknown): number[] {
  if (Array.isArray(given) && given.every((id) => Number.isSafeInteger(id) && id >= 0))
    return given;
  throw unavailable('did not return token ids');
}

function toTexts(given: unknown): string[] | null {
  return Array.isArray(given) && given.every((text) => typeof text === 'string') ? given : null;
}

/** Short, because the client has its response already or is waiting for the end of it. */
const countTimeoutMs = 2000;

type PostJson = (path: string, body: object) => Promise<Record<string, unknown>>;

/** These paths are beside `/v1`, not below it. */
const toPostJson =
  (
    client: UpstreamClient,
    signal: Cancellation,
    toError: (response: BufferedResponse) => Error,
  ): PostJson =>
  async (path, body) => {
    const text = JSON.stringify(body);
    const request: SendOptions = { method: 'POST', path, root: true, body: text, signal };
    const response = await fetchWhole(client, request);
    if (response.status !== 200) throw toError(response);
    return parse(response.text);
  };

const doesNotCount = () => unavailable('does not count tokens');

export async function countPromptTokens(
  client: UpstreamClient,
  { server, model }: { server: UpstreamServer; model: string },
  task: Task,
  signal: Cancellation,
): Promise<number | null> {
  const post = toPostJson(client, signal, ({ status, headers, text }) =>
    toFailure(status, headers, text, task),
  );
  if (task.kind === 'chat') {
    if (server === 'llama-server')
      return countText(post, server, model, await applyTemplate(post, task.body));
    if (server !== 'vllm' && server !== 'sglang') return null;
    return toCount(await post('/tokenize', { model, ...toTemplated(server, task.body) }));
  }
  let longest = 0;
  // Each prompt is a sequence of its own, so the longest one decides.
  for (const one of toGivenPrompts(task.body)) {
    const count = typeof one !== 'string' ? one.length : await countText(post, server, model, one);
    if (count === null) return null;
    longest = Math.max(longest, count);
  }
  return longest;
}

/** llama-server renders a conversation apart from its tokens. */
async function applyTemplate(post: PostJson, body: ChatRequest): Promise<string> {
  const { prompt } = await post('/apply-template', toTemplateMembers(body));
  return String(prompt);
}

/** The members by which vLLM and SGLang render a conversation. */
function toTemplated(server: 'vllm' | 'sglang', body: ChatRequest): object {
  const { add_generation_prompt, continue_final_message, tool_choice } = body;
  const { reasoning_effort } = body as { reasoning_effort?: unknown };
  // SGLang refuses `add_generation_prompt` beside `continue_final_message`, and its chats ignore it.
  const own = server === 'vllm' ? { add_generation_prompt } : { tool_choice, reasoning_effort };
  const more = Object.entries({ ...own, continue_final_message });
  const given = Object.fromEntries(more.filter(([, value]) => value != null));
  return { ...toTemplateMembers(body), ...given };
}

function toTemplateMembers({ messages, tools, ...body }: ChatRequest): object {
  const { chat_template_kwargs } = body as { chat_template_kwargs?: unknown };
  return {
    messages,
    ...(tools && { tools }),
    ...(chat_template_kwargs != null && { chat_template_kwargs }),
  };
}

/** Tokens that fit into the context window after the longest prompt; null if there is no room. */
export async function readRoom(
  client: UpstreamClient,
  { server, model }: { server: UpstreamServer; model: string },
  body: CompletionRequest,
  signal: Cancellation,
): Promise<number | null> {
  const post = toPostJson(client, signal, doesNotCount);
  const prompts = toGivenPrompts(body);
  const texts = prompts.filter((one) => typeof one === 'string');
  let longest = Math.max(0, ...prompts.map((one) => (typeof one === 'string' ? 0 : one.length)));
  let window = 0;
  // The response to any text has the window.
  for (const prompt of texts.length > 0 ? texts : ['?']) {
    const { count, max_model_len } = await post('/tokenize', { model, prompt });
    if (typeof count !== 'number' || typeof max_model_len !== 'number') throw doesNotCount();
    if (texts.length > 0) longest = Math.max(longest, count);
    window = max_model_len;
  }
  const { truncate_prompt_tokens: kept } = body as { truncate_prompt_tokens?: unknown };
  const taken = typeof kept === 'number' && kept > 0 ? Math.min(longest, kept) : longest;
  // Some versions of SGLang refuse a request that fills the window exactly.
  const room = window - taken - (server === 'sglang' ? 1 : 0);
  return room > 0 ? room : null;
}

/** Tokens of a generated text; null if the server can't count them. Never fails. */
export async function countTextTokens(
  client: UpstreamClient,
  { server, model }: { server: UpstreamServer; model: string },
  text: string,
): Promise<number | null> {
  const post = toPostJson(client, AbortSignal.timeout(countTimeoutMs), doesNotCount);
  const count = await countText(post, server, model, text, false).catch(() => null);
  // A generated token is at least one byte.
  return count === null || count > Buffer.byteLength(text) ? null : count;
}

/** Counts the special tokens that start every prompt, if the text is one. */
async function countText(
  post: PostJson,
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
  throw unavailable('did not report a token count');
}

function parse(text: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null) return parsed as Record<string, unknown>;
  } catch {}
  throw unavailable('responded to a token count with something that is not JSON');
}
