// Scores of a text completion in the form of our contract. llama-server gives them in that of a chat.

interface ChatScores {
  content: {
    token: string;
    logprob: number;
    top_logprobs?: { token: string; logprob: number }[];
  }[];
}

/** Puts them in our form where they are in the other. `from` is where the choice's text begins. */
export function formScores(choice: { logprobs?: unknown }, from = 0): void {
  const given = choice.logprobs as Partial<ChatScores> | null | undefined;
  if (!Array.isArray(given?.content)) return;
  const { content } = given;
  let at = from;
  choice.logprobs = {
    tokens: content.map(({ token }) => token),
    token_logprobs: content.map(({ logprob }) => logprob),
    top_logprobs: content.map(({ top_logprobs = [] }) =>
      Object.fromEntries(top_logprobs.map(({ token, logprob }) => [token, logprob])),
    ),
    text_offset: content.map(({ token }) => {
      const offset = at;
      at += lengthOf(token);
      return offset;
    }),
  };
}

/** In code points. */
export const lengthOf = (text: string) => [...text].length;
