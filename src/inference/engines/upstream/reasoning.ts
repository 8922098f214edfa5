// What a model thinks, in the forms of different servers: the members `reasoning_content` and `reasoning`, or think
// tags in the text. All become `reasoning_content`.

import type { Task } from '#inference/engine.ts';
import { splitThought, type ThinkTags, ThoughtSplitter } from '#inference/think-tags.ts';
import type { Members } from '#lib/json-members.ts';

/** An answer that is text from its first character, which is not that of a tag. Escaped characters are not judged. */
const plainContent = /"content"\s*:\s*"(?:[ \t]|\\[nrt])*(?:[^"\s\\<]|\\["\\/])/;
const namedThought = '"delta":{"reasoning":"';
const ourThought = '"delta":{"reasoning_content":"';

/** True if the text of a choice has a thought under the name that is not ours. */
export const namesThought = (choice: string): boolean =>
  mayNameThought(choice) && /"reasoning"\s*:\s*"/.test(choice);

/** False if no thought can have that name after this position. */
export const mayNameThought = (text: string, from = 0): boolean =>
  // Without the first quote, as in `choices.ts`.
  text.includes('reasoning"', from);

/**
 * The reasoning of one stream. Most models think first, so the first events decide whether the
 * others need rewriting.
 */
export class StreamReasoning {
  readonly #tags: ThinkTags;
  /** Splitters by the index of their choice. */
  readonly #splitters: ThoughtSplitter[] = [];
  /**
   * What the events of a stream with one choice may hold. `unknown`: nothing was generated yet. `thought`: a thought
   * between tags, or what may be the beginning of one. `named`: `reasoning`. `plain`: nothing to rewrite.
   */
  #phase: 'unknown' | 'thought' | 'named' | 'plain';

  constructor(task: Task) {
    this.#tags = (task.kind === 'chat' ? task.thinkTags : 'keep') ?? 'split';
    const first = this.#tags === 'opened' ? 'thought' : 'unknown';
    this.#phase = task.kind === 'chat' ? first : 'plain';
  }

  /** True if no event needs rewriting any more, unless it names a thought. */
  get isPlain(): boolean {
    return this.#phase === 'plain';
  }

  /** True if text may be held back. */
  get isHolding(): boolean {
    return this.#phase === 'unknown' || this.#phase === 'thought';
  }

  /** Rewrites the text of a choice that was not parsed; null if it must be. */
  rewrite(choice: string): string | null {
    if (this.#phase === 'plain') return choice;
    const isNamed = choice.includes('"reasoning"');
    if (this.#phase === 'named') {
      if (!isNamed) return choice;
      const isOnly = choice.includes(namedThought) && !choice.includes('"reasoning_content"');
      return isOnly ? choice.replace(namedThought, ourThought) : null;
    }
    if (this.#phase === 'thought' || isNamed || !plainContent.test(choice)) return null;
    this.#phase = 'plain';
    return choice;
  }

  /** Rewrites the delta of a parsed choice. Returns true if it was changed. */
  apply(index: number, delta: Members, isLast: boolean): boolean {
    const isNamed = renameReasoning(delta);
    const isChanged = this.#splitTags(index, delta, isLast) || isNamed;
    const splitter = this.#splitterOf(index);
    if (isNamed) this.#phase = 'named';
    else if (!splitter.isDone && !splitter.isUndecided) this.#phase = 'thought';
    else if (splitter.isDone && this.#phase !== 'named' && !isEmptyDelta(delta))
      this.#phase = 'plain';
    return isChanged;
  }

  #splitTags(index: number, delta: Members, isLast: boolean): boolean {
    const splitter = this.#splitterOf(index);
    if (splitter.isDone) return false;
    const given = typeof delta.content === 'string' ? delta.content : '';
    let { reasoning, content } = splitter.push(given);
    // A server that names its thoughts writes no tags.
    const hasOther = isText(delta.reasoning_content) || isText(delta.refusal);
    if (isLast || hasOther || (Array.isArray(delta.tool_calls) && delta.tool_calls.length > 0)) {
      const rest = splitter.end();
      reasoning += rest.reasoning;
      content += rest.content;
    }
    if (reasoning === '' && content === given) return false;
    if (reasoning !== '') delta.reasoning_content = reasoning;
    if (content !== '' || delta.role !== undefined) delta.content = content;
    else delete delta.content;
    return true;
  }

  #splitterOf(index: number): ThoughtSplitter {
    this.#splitters[index] ??= new ThoughtSplitter(this.#tags);
    return this.#splitters[index];
  }
}

/** Gives the message of a whole response its `reasoning_content`, which is absent if the model did not think. */
export function nameReasoning(message: Members, tags: ThinkTags = 'split'): void {
  renameReasoning(message);
  if (isText(message.reasoning_content)) return;
  // Not deleted: an object that has lost a member is slow to read and to write from then on.
  if (message.reasoning_content !== undefined) message.reasoning_content = undefined;
  if (typeof message.content !== 'string') return;
  const { reasoning, content } = splitThought(message.content, tags);
  message.content = content;
  if (reasoning !== '') message.reasoning_content = reasoning;
}

/** Some servers send both members. Returns true if there was a `reasoning`. */
function renameReasoning(part: Members): boolean {
  if (!isText(part.reasoning)) return false;
  if (!isText(part.reasoning_content)) part.reasoning_content = part.reasoning;
  delete part.reasoning;
  return true;
}

const isText = (value: unknown) => typeof value === 'string' && value !== '';

/** True if a delta holds nothing but perhaps a role. */
export function isEmptyDelta({ role: _, ...delta }: Members): boolean {
  return Object.values(delta).every((value) => value == null || value === '');
}
