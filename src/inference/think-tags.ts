// Splits what a reasoning model thinks from its answer, for models that write both as one text:
// `<think>…</think>` at its beginning. Tags later in a text are part of the text.

import { heldLength } from './held-length.ts';

export const thoughtOpening = '<think>';
export const thoughtClosing = '</think>';

/**
 * How tags in a model's text are read. `split`: a thought at the beginning is split off. `opened`: so is one without
 * its opening tag, which the model's template writes at the end of the prompt. `keep`: tags are text.
 */
export type ThinkTags = 'split' | 'opened' | 'keep';

export interface SplitText {
  reasoning: string;
  content: string;
}

/**
 * Splits a text that arrives in pieces, cut anywhere. White space next to a tag belongs to neither part. A class,
 * because every stream of an upstream may create one.
 */
export class ThoughtSplitter {
  /** `start`: nothing but white space, or a part of the opening tag. `answer`: the rest is passed on as it is. */
  #state: 'start' | 'thought' | 'gap' | 'answer';
  /** Text that may be part of a tag, or white space before one. */
  #held = '';
  #hasThought = false;

  constructor(tags: ThinkTags) {
    const states = { split: 'start', opened: 'thought', keep: 'answer' } as const;
    this.#state = states[tags];
  }

  get isThinking(): boolean {
    return this.#state === 'thought';
  }

  /** True if nothing was pushed that says what follows. */
  get isUndecided(): boolean {
    return this.#state === 'start' && this.#held === '';
  }

  /** True if the answer has begun. From then on, text need not be pushed. */
  get isDone(): boolean {
    return this.#state === 'answer';
  }

  push(text: string): SplitText {
    const split: SplitText = { reasoning: '', content: '' };
    if (this.#state === 'start') this.#readStart(text, split);
    else if (this.#state === 'thought') this.#readThought(text, split);
    else this.#readAnswer(text, split);
    return split;
  }

  /** Returns what was held back. The rest of the text is the answer's. */
  end(): SplitText {
    const isThought = this.#state === 'thought';
    const held = isThought ? this.#held.trimEnd() : this.#held;
    this.#held = '';
    this.#state = 'answer';
    return isThought ? { reasoning: held, content: '' } : { reasoning: '', content: held };
  }

  #readStart(text: string, split: SplitText): void {
    const whole = this.#held + text;
    const begun = whole.trimStart();
    this.#held = '';
    if (begun.startsWith(thoughtOpening)) {
      this.#state = 'thought';
      this.#readThought(begun.slice(thoughtOpening.length), split);
    } else if (thoughtOpening.startsWith(begun)) this.#held = whole;
    else {
      this.#state = 'answer';
      split.content = whole;
    }
  }

  #readThought(text: string, split: SplitText): void {
    const whole = this.#held + text;
    const fresh = this.#hasThought ? whole : whole.trimStart();
    const end = fresh.indexOf(thoughtClosing);
    const known = fresh.slice(
      0,
      end === -1 ? fresh.length - heldLength(fresh, [thoughtClosing]) : end,
    );
    const sure = known.trimEnd();
    split.reasoning = sure;
    this.#hasThought ||= sure !== '';
    this.#held = end === -1 ? fresh.slice(sure.length) : '';
    if (end === -1) return;
    this.#state = 'gap';
    this.#readAnswer(fresh.slice(end + thoughtClosing.length), split);
  }

  #readAnswer(text: string, split: SplitText): void {
    split.content = this.#state === 'gap' ? text.trimStart() : text;
    if (split.content !== '') this.#state = 'answer';
  }
}

export function splitThought(text: string, tags: ThinkTags): SplitText {
  const splitter = new ThoughtSplitter(tags);
  const { reasoning, content } = splitter.push(text);
  const rest = splitter.end();
  return { reasoning: reasoning + rest.reasoning, content: content + rest.content };
}
