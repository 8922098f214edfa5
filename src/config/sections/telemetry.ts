// What the server reports about itself: the sections log and telemetry.

import { NullablePattern, section, webAddress } from '#config/field.ts';
import { OneOf, Type } from '#lib/schema/schema-builder.ts';

const levels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export const LogSettings = Type.Object(
  {
    level: Type.Unsafe<(typeof levels)[number]>({
      ...OneOf(levels),
      default: 'info',
      description: `Lowest level that is logged, one of ${levels.join(', ')}.`,
    }),
  },
  {
    ...section,
    description: 'The log: JSON lines on stderr. It never contains keys or prompts.',
  },
);

export const TelemetrySettings = Type.Object(
  {
    otlp_url: NullablePattern(
      webAddress,
      'Collector that accepts OTLP over HTTP, e.g. http://127.0.0.1:4318. If null, no traces are sent.',
    ),
    otlp_headers: Type.Unsafe<Record<string, string>>({
      type: 'object',
      additionalProperties: { type: 'string' },
      default: {},
      description: 'Headers sent to the collector, for example its API key.',
    }),
    sample_ratio: Type.Number({
      default: 1,
      minimum: 0,
      maximum: 1,
      description:
        'Fraction of requests that is traced, from 0 to 1. A request whose traceparent header says whether to trace it is not affected.',
    }),
  },
  {
    ...section,
    description: 'Traces of requests to /v1. They never contain prompts or completions.',
  },
);
