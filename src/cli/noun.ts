// Builds the commands that nouns have in common from literals: a list, and verbs that find one item, show or change it,
// and report the result. A verb that does more is a file of its own beside its noun.

import { Command } from 'commander';
import { type Client, createClient } from './client.ts';
import { findOnly, type Kind } from './find.ts';
import { type Columns, report, toTable } from './output.ts';
import { parseLimit } from './pages.ts';
import { confirm } from './prompts.ts';
import { addView, type View } from './view.ts';

export interface Collection<Item> {
  /** The items in the sentence that is printed if there are none, e.g. "API keys". */
  readonly plural: string;
  /** The credentials that its commands need. */
  readonly needs: 'session' | 'any';
  /** Reads all items, or the first `limit` of them if the server returns them in pages. */
  readonly read: (client: Client, limit?: number) => Promise<Item[]>;
}

export interface Noun<Item extends { readonly id: string }> extends Collection<Item>, Kind<Item> {
  /** The argument that names an item, and its help. */
  readonly argument: readonly [name: string, help: string];
  /** Finds an item by other means than `findOnly` among all items. */
  readonly find?: (client: Client, wanted: string) => Promise<Item>;
}

export function nounCommand(name: string, description: string, verbs: readonly Command[]): Command {
  const command = new Command(name).description(description);
  for (const verb of verbs) command.addCommand(verb);
  return command;
}

export const getItem = async <Item extends { readonly id: string }>(
  noun: Noun<Item>,
  client: Client,
  wanted: string,
): Promise<Item> =>
  noun.find ? noun.find(client, wanted) : findOnly(await noun.read(client), wanted, noun);

export interface List<Item> {
  readonly description: string;
  readonly columns: Columns<Item>;
  /** Headers of the columns that a narrow terminal leaves out, the first one first. */
  readonly spare?: readonly string[];
  /** The word for items in the help of --limit. Without it, there is no such option. */
  readonly limited?: string;
  readonly notes?: (items: readonly Item[]) => readonly string[] | Promise<readonly string[]>;
}

export function listCommand<Item>(
  { plural, needs, read }: Collection<Item>,
  { description, columns, spare, limited, notes }: List<Item>,
): Command {
  const command = new Command('list').description(description);
  if (limited !== undefined)
    command.option('--limit <n>', `Maximum number of ${limited} (default: all)`, parseLimit);
  return addView(command, async ({ limit }: { limit?: number }) => {
    const data = await read(createClient(needs), limit);
    const text = toTable(plural, data, columns, spare);
    return { data, text, ...(notes && { notes: () => notes(data) }) };
  });
}

/** A verb that shows one item. */
export function viewCommand<Item extends { readonly id: string }>(
  noun: Noun<Item>,
  name: string,
  description: string,
  toView: (item: Item, client: Client) => View | Promise<View>,
): Command {
  const command = new Command(name).description(description).argument(...noun.argument);
  return addView(command, async (wanted: string) => {
    const client = createClient(noun.needs);
    return toView(await getItem(noun, client, wanted), client);
  });
}

/** `Given` are the arguments after the one that names the item, and then the options. */
export interface Change<Item, Given extends unknown[]> {
  readonly description: string;
  /** Adds arguments and options. */
  readonly extend?: (command: Command) => Command;
  /** Asked before the change, unless --yes is given. */
  readonly question?: (item: Item, ...given: Given) => string;
  /** Returns what --json prints, and a sentence for people. */
  readonly run: (
    client: Client,
    item: Item,
    ...given: Given
  ) => Promise<{ readonly data: unknown; readonly text: string }>;
}

/** A verb that changes or removes one item. */
export function changeCommand<Item extends { readonly id: string }, Given extends unknown[]>(
  noun: Noun<Item>,
  name: string,
  { description, extend, question, run }: Change<Item, Given>,
): Command {
  const command = new Command(name).description(description).argument(...noun.argument);
  extend?.(command);
  if (question !== undefined) command.option('--yes', 'Do not ask for confirmation');
  return command.option('--json', 'Print JSON').action(async (wanted: string, ...rest) => {
    const given = rest as unknown as Given;
    const { yes, json } = command.opts<{ yes?: true; json?: true }>();
    const client = createClient(noun.needs);
    const item = await getItem(noun, client, wanted);
    if (question !== undefined) await confirm(question(item, ...given), yes);
    const { data, text } = await run(client, item, ...given);
    report(data, text, json);
  });
}
