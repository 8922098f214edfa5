// The form of a chat whose client knows functions but not tools: as in `openai-format.ts`, with the tool call sent as a
// function call.

import { toOpenAiFormat } from '#inference/apis/openai-format.ts';
import type { ResponseFormat, StreamFormat } from '#inference/apis/response-format.ts';
import type { EngineChunk, EngineResponse, Task, WireEvents } from '#inference/engine.ts';
import { parseEvents, toWireEvents } from '#inference/wire-events.ts';
import { toFunctionChoices } from './legacy-functions.ts';

export function toFunctionsFormat(task: Task): ResponseFormat {
  const format = toOpenAiFormat(task);
  return {
    ...format,
    takesWritten: false,
    toWhole: (response, envelope) => format.toWhole(toFunctionResponse(response), envelope),
    openStream(envelope) {
      const stream = format.openStream(envelope);
      return withTake(stream, (item) => stream.take(toFunctionItem(item)));
    },
  };
}

const withTake = (stream: StreamFormat, take: StreamFormat['take']): StreamFormat => ({
  begin: (usage) => stream.begin(usage),
  take,
  end: (usage) => stream.end(usage),
  fail: (error) => stream.fail(error),
  ...(stream.takeRest !== undefined && { takeRest: stream.takeRest }),
});

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
