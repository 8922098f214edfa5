// How many tokens a prompt has, asked of the server that knows. vLLM and SGLang count at `/tokenize`,
// llama-server after writing the prompt at `/apply-template`. Others can't be asked.

import type { Cancellation } from '../../../lib/client-gone.ts';
import { type Task, toGivenPrompts } from '../../engine.ts';
import type { Connection, Send } from './connection.ts';
import { toFailure, unavailable } from './failures.ts';
import { ask } from './whole-body.ts';

export type UpstreamServer = 'vllm' | 'sglang' | 'llama-server' | 'ollama' | 'openai';

type Ask = (path: string, body: object) => Promise<Record<string, unknown>>;

export async function countPromptTokens(
  connection: Connection,
  { server, model }: { server: UpstreamServer; model: string },
  task: Task,
  signal: Cancellation,
): Promise<number | null> {
  // These stand beside `/v1`, not below it.
  const post: Ask = async (path, body) => {
    const what: Send = { method: 'POST', path, root: true, body: JSON.stringify(body), signal };
    const { status, headers, text } = await ask(connection, what);
    if (status !== 200) throw toFailure(status, headers, text, task);
    return parse(text);
  };
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
    if (server === 'vllm') {
      const more = {
        ...(add_generation_prompt != null && { add_generation_prompt }),
        ...(continue_final_message != null && { continue_final_message }),
      };
      return toCount(await post('/tokenize', { model, ...template, ...more }));
    }
    return null;
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

async function countText(post: Ask, server: UpstreamServer, model: string, text: string) {
  if (server === 'vllm' || server === 'sglang')
    return toCount(await post('/tokenize', { model, prompt: text }));
  if (server !== 'llama-server') return null;
  const { tokens } = await post('/tokenize', {
    content: text,
    add_special: true,
    parse_special: true,
  });
  return toCount({ tokens });
}

function toCount({ count, tokens }: Record<string, unknown>): number {
  if (typeof count === 'number') return count;
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
