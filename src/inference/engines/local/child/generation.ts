// What the scheduler runs: one choice of a request, from its prompt's tokens to its last generated token.

export interface Generation {
  readonly caller: string;
  /** Waiting generations with a lower number go first. */
  readonly priority: number;
  readonly prompt: readonly number[];
  readonly sharedPrompt: SharedPrompt;
  /** True if the generation needs the logits of every prompt token. Then no cached prefix can be reused. */
  readonly scoresPrompt: boolean;
  /** Set by the scheduler's `cancel`. No other method but `dispose` is called after that. */
  cancelled: boolean;
  /** Called when the generation has a sequence, which already holds the first `cachedTokens` of the prompt. */
  started(cachedTokens: number): void;
  /** The logits after the prompt token at `position` can be sampled at `index` until this resolves. */
  scored(position: number, index: number): Promise<void>;
  /**
   * Samples a token from the logits at `index`. Resolves to null if the generation has ended.
   * Called before the logits are `computed`, and must not resolve before that: the thread that
   * computes the batch takes the sample right after it, because a second thread is parked until
   * then. If the event loop waited for the batch first, the built-in model would be 4 to 5 % slower
   * (bench/RESULTS.md, "Models on a GPU").
   */
  next(index: number, computed: Promise<void>): Promise<number | null>;
  failed(error: Error): void;
  /** Called once, when no native code uses the generation any more. */
  dispose(): void;
}

/** The state of a prompt with several choices: one generation reads it, and the others copy what it computed. */
export interface SharedPrompt {
  /** The generation that reads the prompt; null before and if it was cancelled. */
  reader: Generation | null;
  isRead: boolean;
}
