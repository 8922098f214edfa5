// Scores of a text completion in the form of our contract. llama-server gives them in that of a chat, and SGLang
// does not say where the tokens stand.

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

/** Puts them in our form where they are in the other. `from` is where the choice's text begins. */
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

/** In code points. */
export const lengthOf = (text: string) => [...text].length;
