// A tool call of a response as an item: which kind it has, and what each kind makes of the function's arguments.

import { type EventWriter, toHead } from '#inference/apis/responses/events.ts';
import type { CallItem, ItemStatus } from '#inference/apis/responses/schema.ts';
import { parseMembers } from '#lib/json-members.ts';
import { CustomInput } from './custom-input.ts';
import type { ClientTool } from './tools.ts';

/** A call that is arriving. */
export class OpenCall {
  readonly item: CallItem;
  readonly #at: string;
  readonly #deltaHead: string;
  readonly #input: CustomInput | null;
  #arguments = '';

  constructor(item: CallItem, index: number) {
    this.item = item;
    this.#at = `"item_id":"${item.id}","output_index":${index}`;
    this.#deltaHead = `${toHead(`${deltaEvents[item.type] ?? ''}.delta`)}${this.#at},"delta":`;
    this.#input = item.type === 'custom_tool_call' ? new CustomInput() : null;
  }

  take(piece: string, events: EventWriter): string {
    const text = this.#input === null ? piece : this.#input.take(piece);
    return text === '' ? '' : this.#add(text, events);
  }

  /** Completes the item. */
  end(status: ItemStatus, events: EventWriter): string {
    const { item } = this;
    let written = this.#input === null ? '' : this.#addRest(this.#input.end(), events);
    // A function without parameters may be called without arguments, but clients parse them as JSON.
    if (item.type === 'function_call' && status === 'completed' && this.#arguments === '') {
      written = this.#add('{}', events);
    }
    item.status = status;
    complete(item, this.#arguments);
    const type = deltaEvents[item.type];
    if (type === undefined) return written;
    const name = item.type === 'function_call' ? 'arguments' : 'input';
    const value = `"${name}":${JSON.stringify(this.#arguments)}`;
    return written + events.write(`${type}.done`, `${this.#at},${value}`);
  }

  #addRest(text: string, events: EventWriter): string {
    return text === '' ? '' : this.#add(text, events);
  }

  #add(text: string, events: EventWriter): string {
    this.#arguments += text;
    if (deltaEvents[this.item.type] === undefined) return '';
    return events.writeAfter(this.#deltaHead, JSON.stringify(text));
  }
}

/** Other kinds of calls are sent when they are complete. */
const deltaEvents: Partial<Record<CallItem['type'], string>> = {
  function_call: 'function_call_arguments',
  custom_tool_call: 'custom_tool_call_input',
};

/** The item of a call that has just begun. `suffix` makes its id unique. */
export function toCallItem(tool: ClientTool, callId: string, suffix: string): CallItem {
  const shared = { status: 'in_progress', call_id: callId } as const;
  const { kind, name, namespace } = tool;
  const named = { ...shared, name, ...(namespace !== undefined && { namespace }) };
  switch (kind) {
    case 'function':
      return { id: `fc_${suffix}`, type: 'function_call', ...named, arguments: '' };
    case 'custom':
      return { id: `ctc_${suffix}`, type: 'custom_tool_call', ...named, input: '' };
    case 'local_shell':
      return { id: `lsh_${suffix}`, type: 'local_shell_call', ...shared, action: toAction({}) };
    case 'tool_search':
      return {
        id: `tsc_${suffix}`,
        type: 'tool_search_call',
        ...shared,
        execution: 'client',
        arguments: {},
      };
  }
}

function complete(item: CallItem, text: string): void {
  if (item.type === 'function_call') item.arguments = text;
  else if (item.type === 'custom_tool_call') item.input = text;
  else if (item.type === 'tool_search_call') item.arguments = parseMembers(text) ?? { query: text };
  else item.action = toAction(parseMembers(text) ?? { command: text });
}

/** A command as one text is one for the shell. */
function toAction(given: Record<string, unknown>) {
  const { command = [], env, timeout_ms, working_directory, user } = given;
  const line = typeof command === 'string' ? ['bash', '-lc', command] : command;
  return {
    type: 'exec' as const,
    command: Array.isArray(line) ? line.map(String) : [],
    env: (typeof env === 'object' && env !== null ? env : {}) as Record<string, string>,
    ...(typeof timeout_ms === 'number' && { timeout_ms }),
    ...(typeof working_directory === 'string' && { working_directory }),
    ...(typeof user === 'string' && { user }),
  };
}
