// Requests' rows on their way to another thread. Most of their texts are the same in all of a batch: said once, and
// the rest as numbers, they are packed and unpacked in a quarter of the time that V8 takes to copy the objects.

import type { UsageRequestRow, UsageStatus } from '#db/tables.ts';

export interface PackedRows {
  /** Each once; null is one of them. */
  readonly texts: readonly (string | null)[];
  /** Row by row: which of the texts, or the number itself. NaN for a number that is null. */
  readonly cells: Float64Array;
}

const width = 19;

export function packRows(rows: readonly UsageRequestRow[]): PackedRows {
  const places = new Map<string | null, number>();
  const cells = new Float64Array(rows.length * width);
  const placeOf = (text: string | null): number => {
    const known = places.get(text);
    if (known !== undefined) return known;
    places.set(text, places.size);
    return places.size - 1;
  };
  let at = 0;
  for (const row of rows) {
    cells[at] = placeOf(row.id);
    cells[at + 1] = placeOf(row.account_id);
    cells[at + 2] = placeOf(row.key_id);
    cells[at + 3] = placeOf(row.user_id);
    cells[at + 4] = placeOf(row.operation);
    cells[at + 5] = placeOf(row.model);
    cells[at + 6] = placeOf(row.served_model);
    cells[at + 7] = placeOf(row.backend);
    cells[at + 8] = row.at;
    cells[at + 9] = placeOf(row.status);
    cells[at + 10] = placeOf(row.code);
    cells[at + 11] = row.prompt_tokens;
    cells[at + 12] = row.completion_tokens;
    cells[at + 13] = row.cached_tokens;
    cells[at + 14] = row.first_token_ms ?? Number.NaN;
    cells[at + 15] = row.duration_ms;
    cells[at + 16] = row.cost_nano;
    cells[at + 17] = row.reserved;
    cells[at + 18] = placeOf(row.process);
    at += width;
  }
  return { texts: [...places.keys()], cells };
}

export function unpackRows({ texts, cells }: PackedRows): UsageRequestRow[] {
  const number = (at: number) => cells[at] as number;
  const text = (at: number) => texts[number(at)] as string;
  const textOrNull = (at: number) => texts[number(at)] as string | null;
  const rows: UsageRequestRow[] = [];
  for (let at = 0; at < cells.length; at += width)
    rows.push({
      id: text(at),
      account_id: text(at + 1),
      key_id: textOrNull(at + 2),
      user_id: textOrNull(at + 3),
      operation: text(at + 4),
      model: text(at + 5),
      served_model: text(at + 6),
      backend: text(at + 7),
      at: number(at + 8),
      status: text(at + 9) as UsageStatus,
      code: textOrNull(at + 10),
      prompt_tokens: number(at + 11),
      completion_tokens: number(at + 12),
      cached_tokens: number(at + 13),
      first_token_ms: Number.isNaN(number(at + 14)) ? null : number(at + 14),
      duration_ms: number(at + 15),
      cost_nano: number(at + 16),
      reserved: number(at + 17) as 0 | 1,
      process: textOrNull(at + 18),
    });
  return rows;
}
