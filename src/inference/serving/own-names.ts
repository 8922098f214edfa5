// Names the members of a request in errors. What fails after a request was translated speaks of the
// chat that it became, which its client never saw.

import { InferenceError } from '#inference/errors.ts';

/** What an API calls the members of a chat. */
export interface OwnNames {
  /** By the chat's name. Members that are not listed have the same one. */
  readonly members: Readonly<Record<string, string>>;
  /** Where the messages of the chat come from, in their order. Empty if messages may be dropped before an error. */
  readonly messages: readonly MessageSource[];
}

export interface MessageSource {
  /** Path in the request, such as `input[2]`. */
  readonly place: string;
  /** Paths of the parts of the message's content, if they are known. */
  readonly parts?: readonly string[];
}

const messagePath = /^messages\[(\d+)\](?:\.content\[(\d+)\])?/;

/** Called for errors only. */
export type FindNames = () => OwnNames;

/** The same error with the API's own names, if it has any. Other values are returned as they are. */
export function withOwnNames<Thrown>(error: Thrown, find: FindNames | undefined) {
  const hasNames = find !== undefined && error instanceof InferenceError && error.param !== null;
  return hasNames ? rename(error, error.param, find()) : error;
}

function rename(error: InferenceError, param: string, names: OwnNames): InferenceError {
  const { message, status, type, code, headers, cause } = error;
  const [path = param, index, part] = messagePath.exec(param) ?? [];
  const [member = ''] = param.split(/[.[]/);
  const source = names.messages[Number(index)];
  const name = names.members[member];
  const place = source?.parts?.[Number(part)] ?? source?.place ?? name;
  if (place === undefined) return error;
  const texts = [param, path, ...(name === undefined ? [] : [member])].map(RegExp.escape);
  // A word such as "stop" stands for the member at the start of a sentence only.
  const pattern = new RegExp(
    `${member.includes('_') ? '' : '^'}(?:${texts.join('|')})(?!\\w)`,
    'g',
  );
  const renamed = message.replace(pattern, (text) => (text === member ? (name ?? text) : place));
  const detail = { type, ...(code !== null && { code }), param: place, headers, cause };
  return new InferenceError(status, renamed, detail);
}

/** Runs a check of a translated request. Throws what it throws, with the API's own names. */
export function checkAs(names: FindNames, check: () => void): void {
  try {
    check();
  } catch (error) {
    throw withOwnNames(error, names);
  }
}
