// A choice as completion text, after the prompt if the request asks for an echo.

import type { Vocabulary } from '#inference/engines/local/child/vocabulary.ts';
import type {
  CompletionChoice,
  CompletionLogprobs,
  PromptLogprob,
} from '#inference/wire/response.ts';
import type { ChoiceOutput, PlacedToken } from './choice.ts';
import { type ScoredToken, toCompletionName, toCompletionTop } from './logprobs.ts';
import { countCharacters } from './stop-strings.ts';

/** A prompt token and its score after the tokens before it; null if it was not scored. */
export interface EchoedToken {
  token: number;
  scored: ScoredToken | null;
}

export interface CompletionOutputOptions {
  index: number;
  logprobs: boolean;
  /** Null if the prompt is not echoed. */
  echo: { text: string; tokens(): EchoedToken[] } | null;
  /** Null if the request does not ask for them. */
  promptLogprobs: (() => (Record<string, PromptLogprob> | null)[]) | null;
}

export function createCompletionOutput(
  vocabulary: Vocabulary,
  options: CompletionOutputOptions,
  emit: (choice: CompletionChoice) => void,
): ChoiceOutput {
  const start = countCharacters(options.echo?.text ?? '');
  let unsent: { text: string; scored: PlacedToken[] } | null = null;
  let begun = false;

  const toScores = (scored: readonly PlacedToken[]) =>
    options.logprobs ? toLogprobs(vocabulary, scored, start) : null;

  function chunk(text: string, logprobs: CompletionLogprobs | null): CompletionChoice {
    return {
      index: options.index,
      text,
      logprobs,
      finish_reason: null,
      stop_reason: null,
    };
  }

  function begin(): void {
    if (begun) return;
    begun = true;
    const { echo, promptLogprobs } = options;
    if (echo === null && promptLogprobs === null) return;
    emit({
      ...chunk(
        echo?.text ?? '',
        echo !== null && options.logprobs ? toEchoLogprobs(vocabulary, echo.tokens()) : null,
      ),
      ...(promptLogprobs !== null && { prompt_logprobs: promptLogprobs() }),
    });
  }

  return {
    inCall: false,
    isThinking: false,
    begin,
    token() {},
    // Kept until `flush` or `end`: the last text carries the finish reason.
    text(text, scored) {
      begin();
      unsent = {
        text: (unsent?.text ?? '') + text,
        scored: [...(unsent?.scored ?? []), ...scored],
      };
    },
    flush() {
      if (unsent !== null) emit(chunk(unsent.text, toScores(unsent.scored)));
      unsent = null;
    },
    end(reason, stop) {
      begin();
      const last = unsent ?? { text: '', scored: [] };
      emit({
        ...chunk(last.text, toScores(last.scored)),
        finish_reason: reason,
        stop_reason: stop,
      });
    },
  };
}

function toLogprobs(
  vocabulary: Vocabulary,
  scored: readonly PlacedToken[],
  start: number,
): CompletionLogprobs {
  return {
    tokens: scored.map(({ token }) => toCompletionName(vocabulary, token)),
    token_logprobs: scored.map(({ logprob }) => logprob),
    top_logprobs: scored.map((entry) => toCompletionTop(vocabulary, entry)),
    text_offset: scored.map(({ offset }) => start + offset),
  };
}

function toEchoLogprobs(
  vocabulary: Vocabulary,
  echoed: readonly EchoedToken[],
): CompletionLogprobs {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let offset = 0;
  const offsets = echoed.map(({ token }) => {
    const at = offset;
    offset += countCharacters(decoder.decode(vocabulary.bytes(token), { stream: true }));
    return at;
  });
  return {
    tokens: echoed.map(({ token }) => toCompletionName(vocabulary, token)),
    token_logprobs: echoed.map(({ scored }) => scored?.logprob ?? null),
    top_logprobs: echoed.map(({ scored }) =>
      scored === null ? null : toCompletionTop(vocabulary, scored),
    ),
    text_offset: offsets,
  };
}
