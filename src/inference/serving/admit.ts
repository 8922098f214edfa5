// Admits a request: finds its model and reserves what it may need against the limits of its caller. It stands apart
// because a background response is admitted when it arrives and served later.

import type { RequestLimiter, Reservation } from '#accounts/limits/request-limiter.ts';
import type { Computation, ResponseFormat } from '#inference/apis/response-format.ts';
import type { Task } from '#inference/engine.ts';
import { modelNotFound, modelNotSupported } from '#inference/errors.ts';
import type { Catalog, CatalogEntry } from '#inference/models/catalog.ts';
import type { InferenceRequest } from '#inference/request.ts';
import { estimateReservation } from './estimate-reservation.ts';

export interface AdmitParts {
  readonly catalog: Catalog;
  readonly limits: RequestLimiter;
}

export interface Admission {
  /** The model that was requested. */
  readonly asked: CatalogEntry;
  readonly reservation: Reservation;
}

export type AdmittedPart = Pick<
  InferenceRequest,
  'caller' | 'bodyBytes' | 'background' | 'reservation'
>;

/** Throws InferenceError or LimitReached. */
export async function admit(
  { catalog, limits }: AdmitParts,
  { caller, bodyBytes, background, reservation }: AdmittedPart,
  task: Task,
  { computation }: Pick<ResponseFormat, 'computation'>,
): Promise<Admission> {
  const { model } = task.body;
  const asked = catalog.find(model);
  if (asked === undefined) throw modelNotFound(model);
  checkKind(asked, computation);
  if (reservation !== undefined) return { asked, reservation };
  const bytes = bodyBytes + (computation?.repeatedBytes ?? 0);
  const amount = estimateReservation(task, bytes, candidatesOf(catalog, asked));
  const costNano = Math.ceil(amount.costNano * (background?.priceFactor ?? 1));
  return { asked, reservation: await limits.reserve(caller, { ...amount, costNano }) };
}

/** The requested model and the fallbacks that may serve the request in its place. */
function candidatesOf(catalog: Catalog, asked: CatalogEntry): CatalogEntry[] {
  const all: CatalogEntry[] = [];
  let next: CatalogEntry | undefined = asked;
  while (next !== undefined && !all.includes(next)) {
    all.push(next);
    next = next.contextFallback === null ? undefined : catalog.find(next.contextFallback.to);
  }
  return all;
}

/** Throws InferenceError if the operator has declared the model to be of another kind. */
function checkKind({ id, kind }: CatalogEntry, computation: Computation | undefined): void {
  const needed = computation === undefined ? 'chat' : computation.modelKind;
  if (kind !== null && needed !== null && kind !== needed) throw modelNotSupported(id, kind);
}
