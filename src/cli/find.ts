// Finds the one thing that a person names by its id, by a name or label, or by the first characters of its id.

import { nearest } from '#lib/text/nearest.ts';
import { CliError } from './output.ts';

export interface Kind<Item> {
  readonly noun: string;
  /** Lists them all. */
  readonly command: string;
  /** Names that a person may use instead of the id. */
  readonly namesOf: (item: Item) => readonly (string | null | undefined)[];
}

/** A shorter prefix would be a guess. */
const minPrefixLength = 4;
const maxCandidates = 10;
/** Ids and email addresses are long: with more edits, any two of them look alike. */
const maxTypos = 2;

/**
 * An id wins over names, and a name over prefixes of ids. Throws a CliError if nothing matches, or
 * several things do.
 */
export function findOnly<Item extends { readonly id: string }>(
  items: readonly Item[],
  wanted: string,
  kind: Kind<Item>,
): Item {
  const exact = items.find(({ id }) => id === wanted);
  if (exact !== undefined) return exact;
  const named = items.filter((item) => kind.namesOf(item).includes(wanted));
  const matches = named.length > 0 ? named : items.filter((item) => beginsWith(item, wanted));
  const [only, second] = matches;
  if (only === undefined) throw notFound(items, wanted, kind);
  if (second === undefined) return only;
  const shown = matches.slice(0, maxCandidates).map((item) => describe(item, kind));
  const more = matches.length > shown.length ? ` and ${matches.length - shown.length} more` : '';
  throw new CliError(
    `${wanted} matches more than one ${kind.noun}. Give the id: ${shown.join(', ')}${more}.`,
  );
}

const beginsWith = ({ id }: { readonly id: string }, wanted: string) =>
  wanted.length >= minPrefixLength && id.startsWith(wanted);

function notFound<Item extends { readonly id: string }>(
  items: readonly Item[],
  wanted: string,
  { noun, command, namesOf }: Kind<Item>,
): CliError {
  const known = items.flatMap((item) => [item.id, ...namesOf(item)]);
  const similar = nearest(
    wanted,
    known.filter((name) => name !== null && name !== undefined),
    maxTypos,
  );
  const hint = similar ? `Did you mean ${similar}?` : `See \`${command}\`.`;
  return new CliError(`There is no ${noun} ${wanted}. ${hint}`);
}

function describe<Item extends { readonly id: string }>(item: Item, { namesOf }: Kind<Item>) {
  const [name] = namesOf(item);
  return name === null || name === undefined ? item.id : `${item.id} (${name})`;
}
