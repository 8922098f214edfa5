// Separates a leading `<think>…</think>` section, which servers without a reasoning parser pass on as text, from the
// answer after it.

const open = '<think>';
const close = '</think>';

export interface Thinking {
  /** Everything that has arrived. */
  content: string;
  text: string;
  reasoning: string;
}

/** The answer and the reasoning so far, after `added` has arrived. Costs nothing once the answer has begun. */
export function splitThinking(
  { content, text, reasoning }: Thinking,
  added: string,
): Pick<Thinking, 'text' | 'reasoning'> {
  if (text !== '') return { text: text + added, reasoning };
  const start = content.trimStart();
  // The tag may arrive in pieces.
  if (start.length < open.length && open.startsWith(start)) return { text: '', reasoning };
  if (!start.startsWith(open)) return { text: content, reasoning };
  const end = start.indexOf(close);
  if (end < 0) return { text: '', reasoning: withoutPartialClose(start.slice(open.length)) };
  return {
    text: start.slice(end + close.length).trimStart(),
    reasoning: start.slice(open.length, end).trim(),
  };
}

function withoutPartialClose(text: string): string {
  const at = text.lastIndexOf('<');
  const isPartial = at >= 0 && close.startsWith(text.slice(at));
  return (isPartial ? text.slice(0, at) : text).trimStart();
}
