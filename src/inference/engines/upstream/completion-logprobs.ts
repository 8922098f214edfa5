// Converts the logprobs of a text completion to the form of our contract. llama-server sends them in chat form, and
// SGLang omits the offsets of the tokens.

interface ChatScores {
  content: {
    token: string;
    logprob: number;
    top_logprobs?: { token: string; logprob: number }[] | null;
  }[];
}

interface TextScores {
  tokens: string[];
  text_offset: number[];
}

/** Converts the choice's logprobs in place if needed. `from` is the offset at which the choice's text begins. */
export function formScores(choice: { logprobs?: unknown }, from = 0): void {
  const given = choice.logprobs as (Partial<ChatScores> & Partial<TextScores>) | null | undefined;
  if (Array.isArray(given?.tokens) && given.text_offset?.includes(-1) === true)
    given.text_offset = toOffsets(given.tokens, from);
  if (!Array.isArray(given?.content)) return;
  const { content } = given;
  const tokens = content.map(({ token }) => token);
  choice.logprobs = {
    tokens,
    token_logprobs: content.map(({ logprob }) => logprob),
    top_logprobs: content.map(({ top_logprobs }) =>
      Object.fromEntries((top_logprobs ?? []).map(({ token, logprob }) => [token, logprob])),
    ),
    text_offset: toOffsets(tokens, from),
  };
}

function toOffsets(tokens: readonly string[], from: number): number[] {
  let at = from;
  return tokens.map((token) => {
    const offset = at;
    at += lengthOf(token);
    return offset;
  });
}

/** Length in code points. */
export const lengthOf = (text: string) => [...text].length;
