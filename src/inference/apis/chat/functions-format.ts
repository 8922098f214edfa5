// The form of a chat whose client knows functions but not tools: as in `openai-format.ts`, with the tool call sent as a
// function call.

import { OpenAiStream, showsUsage, toOpenAiFormat } from '#inference/apis/openai-format.ts';
import type { ResponseFormat } from '#inference/apis/response-format.ts';
import type { EngineChunk, EngineResponse, Task, WireEvents } from '#inference/engine.ts';
import { parseEvents, toWireEvents } from '#inference/wire-events.ts';
import { toFunctionChoices } from './legacy-functions.ts';

export function toFunctionsFormat(task: Task): ResponseFormat {
  const format = toOpenAiFormat(task);
  return {
    ...format,
    takesWritten: false,
    toWhole: (response, envelope) => format.toWhole(toFunctionResponse(response), envelope),
    openStream: (envelope) => new FunctionsStream(envelope, showsUsage(task)),
  };
}

class FunctionsStream extends OpenAiStream {
  override take(item: EngineChunk | WireEvents): WireEvents {
    return super.take(toFunctionItem(item));
  }
}

const toFunctionResponse = (response: EngineResponse): EngineResponse => ({
  ...response,
  choices: toFunctionChoices(response.choices),
});

const toFunctionItem = (item: EngineChunk | WireEvents): EngineChunk | WireEvents =>
  typeof item === 'string'
    ? parseEvents(item)
        .map((event) => toWireEvents({ ...event, choices: toFunctionChoices(event.choices ?? []) }))
        .join('')
    : { ...item, choices: toFunctionChoices(item.choices) };
