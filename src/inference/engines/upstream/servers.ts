// The kinds of servers that the upstream engine talks to, and what they can do. All of them speak OpenAI's API.

/** `openai` is any server that is not one of the others. */
export const upstreamServers = ['vllm', 'sglang', 'llama-server', 'ollama', 'openai'] as const;

export type UpstreamServer = (typeof upstreamServers)[number];

/** Servers that can count the tokens of a text. */
export const countingServers: readonly UpstreamServer[] = ['vllm', 'sglang', 'llama-server'];

/** Servers that continue the last message if it is the beginning of a response. */
export const continuingServers: readonly UpstreamServer[] = ['vllm', 'sglang', 'llama-server'];

/** Servers that generate 16 tokens if a completion sets no `max_tokens`, and offer no value for "as many as fit". */
export const shortDefaultServers: readonly UpstreamServer[] = ['vllm', 'sglang'];
