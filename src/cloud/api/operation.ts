// The options of a route of the cloud API: its tag and summary in the API description, what it
// takes, and what it returns.

import type {} from '@fastify/swagger';
import type { TSchema } from 'typebox';
import { ok } from '#cloud/schema.ts';

interface Input {
  readonly params?: TSchema;
  readonly body?: TSchema;
  readonly querystring?: TSchema;
}

/** Returns what describes an operation of this tag. The result is the `data` of the response. */
export const operationsOf =
  (tag: string) =>
  <Result extends TSchema, Takes extends Input = Record<never, never>>(
    summary: string,
    result: Result,
    takes?: Takes,
  ) => ({ schema: { tags: [tag], summary, ...(takes as Takes), response: ok(result) } });
