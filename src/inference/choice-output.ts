// What a choice says, for the formats of APIs that write it anew. Upstream members are passed on unchecked, so their
// types are checked here: what is not of its type is left out.

import type { ToolCallDelta } from '#inference/wire/response.ts';
import { membersOf, parseMembers, textOf } from '#lib/json-members.ts';

interface ChoiceOutput {
  readonly text: string;
  readonly thoughts: string;
  readonly calls: readonly CallPiece[];
}

/** A tool call or a piece of one. Texts that it lacks are empty. */
export interface CallPiece extends ToolCallDelta {
  id: string;
  function: { name: string; arguments: string };
}

/** Reads the delta of a chunk or the message of a whole response. */
export function readOutput(output: unknown): ChoiceOutput {
  const { content, reasoning_content, tool_calls } = membersOf(output);
  return {
    text: toText(content),
    thoughts: toText(reasoning_content),
    calls: Array.isArray(tool_calls) ? tool_calls.map(toCall).filter(saysAnything) : [],
  };
}

/** Some servers send a list of parts. */
const toText = (content: unknown): string =>
  Array.isArray(content)
    ? content.map((part) => textOf(membersOf(part).text)).join('')
    : textOf(content);

/** A call without a number has that of its place. Some servers send arguments as an object. */
function toCall(call: unknown, place: number): CallPiece {
  const { index, id, function: called } = membersOf(call);
  const { name, arguments: given } = membersOf(called);
  const text = typeof given === 'object' && given !== null ? JSON.stringify(given) : textOf(given);
  return {
    index: typeof index === 'number' ? index : place,
    id: textOf(id),
    function: { name: textOf(name), arguments: text },
  };
}

const saysAnything = ({ id, function: { name, arguments: text } }: CallPiece) =>
  id !== '' || name !== '' || text !== '';

/** Arguments that are not a JSON object are passed on as text, for the tool to refuse. */
export const toArguments = (text: string): object =>
  text.trim() === '' ? {} : (parseMembers(text) ?? { invalid_arguments: text });
