// Ollama's form of a response: one JSON object per line. Tool calls are sent whole, with their arguments as an object.

import { readOutput, toArguments } from '#inference/choice-output.ts';
import type { Envelope } from '#inference/engine.ts';
import type { InferenceError } from '#inference/errors.ts';
import type { ResponseFormat, StreamFormat } from '#inference/serving/response-format.ts';
import { chunksOf } from '#inference/wire/envelope.ts';
import { addToolCall, type ToolCallsByIndex } from '#inference/wire/fold.ts';
import type {
  ChatChoice,
  ChatChoiceDelta,
  CompletionChoice,
  EngineChunk,
  FinishReason,
  ToolCall,
  Usage,
  WireEvents,
} from '#inference/wire/response.ts';
import { toBytes } from '#lib/memory/byte-string.ts';
import { ollamaErrorFormat } from './errors.ts';

/** What a chat and a generation call the pieces of their output. */
export interface OllamaShape {
  readonly operation: string;
  toMembers(output: Output): object;
}

interface Output {
  readonly text: string;
  readonly thinking: string;
  readonly calls: readonly Pick<ToolCall, 'function'>[];
}

export const chatShape: OllamaShape = {
  operation: 'ollama_chat',
  toMembers: ({ text, thinking, calls }) => ({
    message: {
      role: 'assistant',
      content: text,
      ...(thinking !== '' && { thinking }),
      ...(calls.length > 0 && { tool_calls: calls.map(toCall) }),
    },
  }),
};

export const generateShape: OllamaShape = {
  operation: 'ollama_generate',
  toMembers: ({ text, thinking }) => ({ response: text, ...(thinking !== '' && { thinking }) }),
};

export function createOllamaFormat(shape: OllamaShape): ResponseFormat {
  const startMs = performance.now();
  return {
    operation: shape.operation,
    errors: ollamaErrorFormat,
    streamType: 'application/x-ndjson',
    opensEarly: true,
    toWhole: ({ choices: [choice], usage }, { model }) => ({
      model,
      created_at: new Date().toISOString(),
      ...shape.toMembers(choice === undefined ? nothing : toOutput(choice)),
      done: true,
      done_reason: toReason(choice?.finish_reason),
      ...toCounts(usage, startMs),
    }),
    openStream: (envelope) => new OllamaStream(shape, envelope, startMs),
  };
}

/** The response to a request that only loads its model. */
export const toLoaded = (shape: OllamaShape, model: string) => ({
  model,
  created_at: new Date().toISOString(),
  ...shape.toMembers(nothing),
  done: true,
  done_reason: 'load',
});

const nothing: Output = { text: '', thinking: '', calls: [] };

function toOutput(choice: ChatChoice | CompletionChoice): Output {
  if (!('message' in choice)) return { ...nothing, text: choice.text };
  const { text, thoughts, calls } = readOutput(choice.message);
  return { text, thinking: thoughts, calls };
}

class OllamaStream implements StreamFormat {
  readonly #shape: OllamaShape;
  readonly #model: string;
  readonly #startMs: number;
  /** Calls so far, by their index. They are sent at the end, because their arguments arrive in pieces. */
  readonly #calls: ToolCallsByIndex = new Map();
  #reason: FinishReason | null = null;

  constructor(shape: OllamaShape, { model }: Envelope, startMs: number) {
    this.#shape = shape;
    this.#model = model;
    this.#startMs = startMs;
  }

  begin(): WireEvents {
    return '';
  }

  take(item: EngineChunk | WireEvents): WireEvents {
    return chunksOf(item)
      .flatMap(({ choices }) => choices)
      .filter(({ index }) => index === 0)
      .map((choice) => this.#takeChoice(choice))
      .join('');
  }

  end(usage: Usage): WireEvents {
    const calls = [...this.#calls.values()].filter((call) => call.function.name !== '');
    const last = {
      ...this.#toHead(),
      ...this.#shape.toMembers(nothing),
      done: true,
      done_reason: toReason(this.#reason),
      ...toCounts(usage, this.#startMs),
    };
    return (calls.length === 0 ? '' : this.#write({ ...nothing, calls })) + toLine(last);
  }

  fail({ message }: InferenceError): WireEvents {
    return toLine({ error: message });
  }

  /** Every line must be an object, so an empty piece stands for "still working". */
  keepAlive(): WireEvents {
    return this.#write(nothing);
  }

  progress(text: string): WireEvents {
    const members = this.#shape.toMembers(nothing);
    return toLine({ ...this.#toHead(), ...members, done: false, progress: text });
  }

  #takeChoice(choice: ChatChoiceDelta | CompletionChoice): WireEvents {
    this.#reason = choice.finish_reason ?? this.#reason;
    if (!('delta' in choice)) return this.#writeText(choice.text, '');
    const { text, thoughts, calls } = readOutput(choice.delta);
    for (const piece of calls) addToolCall(this.#calls, piece);
    return this.#writeText(text, thoughts);
  }

  #writeText(text: string, thinking: string): WireEvents {
    return text === '' && thinking === '' ? '' : this.#write({ text, thinking, calls: [] });
  }

  #write(output: Output): WireEvents {
    return toLine({ ...this.#toHead(), ...this.#shape.toMembers(output), done: false });
  }

  #toHead() {
    return { model: this.#model, created_at: new Date().toISOString() };
  }
}

const toLine = (object: object): WireEvents => `${toBytes(JSON.stringify(object))}\n`;

const toReason = (reason: FinishReason | null | undefined) =>
  reason === 'length' ? 'length' : 'stop';

const toCall = (
  { function: { name, arguments: text } }: Output['calls'][number],
  index: number,
) => ({
  function: { index, name, arguments: toArguments(text) },
});

/** Durations are in nanoseconds. How the time is divided between prompt and output is not known here. */
const toCounts = ({ prompt_tokens, completion_tokens }: Usage, startMs: number) => {
  const duration = Math.round((performance.now() - startMs) * 1e6);
  return {
    total_duration: duration,
    load_duration: 0,
    prompt_eval_count: prompt_tokens,
    prompt_eval_duration: 0,
    eval_count: completion_tokens,
    eval_duration: duration,
  };
};
