// Recognises the messages by which servers report that a prompt does not fit, and extracts the numbers, so that
// clients get the same error from every server.

export interface Overflow {
  window: number | null;
  prompt: number | null;
  /** True if `prompt` is a lower bound: vLLM stops counting once it knows that the prompt is too long. */
  isAtLeast: boolean;
  completion: number | null;
}

/** Messages with counts. A comment above each names the servers that send it. */
const counted: readonly RegExp[] = [
  // vLLM until 2025, OpenAI, and many that copied them.
  /context length is (?<window>\d+) tokens.{1,40}requested \d+ tokens \((?<prompt>\d+) in (?:the messages|your prompt)[,;] (?<completion>\d+) (?:in|for) the completion/,
  // vLLM since.
  /context length is (?<window>\d+) tokens.{1,40}requested (?<completion>\d+) output tokens and your prompt contains (?:(?<least>at least) )?(?<prompt>\d+) input tokens/,
  /passed (?:(?<least>at least) )?(?<prompt>\d+) input tokens and requested (?<completion>\d+) output tokens.{1,60}context length is only (?<window>\d+)/,
  /too large: (?<completion>\d+)\. This model's maximum context length is (?<window>\d+) tokens and your request has (?<prompt>\d+) input tokens/,
  /context length is (?<window>\d+) tokens.{1,40}your prompt contains (?:(?<least>at least) )?(?<prompt>\d+) input tokens, which exceeds/,
  /max_tokens=(?<completion>\d+) cannot be greater than max_model_len=(?<window>\d+)/,
  /prompt \(length (?<prompt>\d+)\).{0,60}is longer than the maximum model length of (?<window>\d+)/,
  /context length is (?<window>\d+) tokens, but the prompt contains (?<prompt>\d+) input tokens/,
  // OpenAI, for chats.
  /context length is (?<window>\d+) tokens.{1,40}resulted in (?<prompt>\d+) tokens/,
  // SGLang.
  /context length of (?<window>\d+) tokens.{1,80}: (?<prompt>\d+) tokens from the input messages and (?<completion>\d+)/,
  /input \((?<prompt>\d+) tokens\) is longer than the model's context length \((?<window>\d+) tokens\)/,
  /[Ii]nput length \((?<prompt>\d+) tokens\) exceeds the maximum allowed length \((?<window>\d+) tokens\)/,
  /exceeds the KV memory budget: input_len=(?<prompt>\d+)/,
  // llama-server.
  /request \((?<prompt>\d+) tokens\) exceeds the available context size \((?<window>\d+) tokens\)/,
  // llama-cpp-python.
  /[Rr]equested tokens \((?<prompt>\d+)\) exceed context window of (?<window>\d+)/,
  // TGI.
  /`inputs` tokens \+ `max_new_tokens` must be <= (?<window>\d+)\. Given: (?<prompt>\d+) `inputs` tokens and (?<completion>\d+) `max_new_tokens`/,
  /`inputs` must have less than (?<window>\d+) tokens\. Given: (?<prompt>\d+)/,
  // Other servers with the same API.
  /too long: (?<prompt>\d+) tokens > (?<window>\d+) maximum/,
  /(?:context|prompt) length (?:is|of) (?<window>\d+)/,
];

/** Messages without counts. */
const phrases =
  /context[ _-]?(length|window|size).{0,40}(exceed|too long)|(exceed|longer|larger|greater|too (long|large|many)).{0,60}context[ _-]?(length|window|size)|maximum (context|model|prompt|input) length|prompt (is )?too long|input (is |length )?(too long|exceeds)|too many (input |prompt )?tokens|reduce the length of the (messages|prompt|input)|exceeds the maximum (number of tokens|allowed (input )?length)|max_tokens must be at least 1, got (-|0\b)|exceeds the KV memory budget/i;

/** Returns null if the error is about something else. */
export function findOverflow(error: {
  message: string;
  code: string | null;
  type: string | null;
  members: Record<string, unknown>;
}): Overflow | null {
  const message = error.message.replaceAll('\n', ' ');
  const named =
    error.code === 'context_length_exceeded' ||
    error.type === 'exceed_context_size_error' ||
    error.type === 'context_length_exceeded';
  if (!named && !phrases.test(message) && !counted.some((pattern) => pattern.test(message)))
    return null;
  const groups = counted.map((pattern) => pattern.exec(message)?.groups).find((it) => it) ?? {};
  const { n_prompt_tokens: prompt, n_ctx: window } = error.members;
  return {
    window: typeof window === 'number' ? window : toNumber(groups.window),
    prompt: typeof prompt === 'number' ? prompt : toNumber(groups.prompt),
    isAtLeast: groups.least !== undefined,
    completion: toNumber(groups.completion),
  };
}

function toNumber(digits: string | undefined): number | null {
  return digits === undefined ? null : Number(digits);
}
