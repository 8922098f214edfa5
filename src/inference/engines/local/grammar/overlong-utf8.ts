// Finds the tokens that can begin an overlong UTF-8 sequence. llama.cpp counts such a sequence as the character it stands
// for, but it is decoded as several replacement characters, so a length or a quote would not be what the grammar
// guarantees. The sequences begin with a token that ends in a bare E0 or F0, which must be banned while a grammar is on.

/**
 * The ids to bias to -Infinity. `tokens` and `tokenizer` are the model file's `tokenizer.ggml.tokens` and
 * `tokenizer.ggml.model`.
 */
export function findOverlongTokens(tokens: readonly string[], tokenizer: string): number[] {
  const overlong = tokenizer === 'gpt2' ? byteLevel : byteFallback;
  return tokens.flatMap((token, id) => (overlong.test(token) ? [id] : []));
}

// GPT-2's alphabet writes the bytes E0 and F0 as these letters, 80-8F as U+0122-0131, 90-9F as U+0132-0141.
const byteLevel = /\u00e0(?:$|[\u0122-\u0141])|\u00f0(?:$|[\u0122-\u0131])/;

const byteFallback = /^<0x(?:E0|F0)>$/;
