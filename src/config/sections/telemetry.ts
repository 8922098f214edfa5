// What the server reports about itself: the sections log and telemetry.

import { NullablePattern, section, webAddress } from '#config/field.ts';
import { OneOf, Type } from '#lib/schema/schema-builder.ts';

const levels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const formats = ['auto', 'json', 'text'] as const;

export const LogSettings = Type.Object(
  {
    level: Type.Unsafe<(typeof levels)[number]>({
      ...OneOf(levels),
      default: 'info',
      description: `Lowest level that is logged, one of ${levels.join(', ')}.`,
    }),
    format: Type.Unsafe<(typeof formats)[number]>({
      ...OneOf(formats),
      default: 'auto',
      description:
        'Format of the log on stderr: json, text for people, or auto: text on a terminal and json elsewhere.',
    }),
    file_mib: Type.Integer({
      default: 64,
      minimum: 0,
      maximum: 1_048_576,
      description:
        'Maximum size of the log that is kept in data_dir for `millrace logs`, in MiB. The oldest half is deleted when it is full. 0 keeps none.',
    }),
  },
  {
    ...section,
    description:
      'The log on stderr, and as JSON lines in data_dir. It never contains keys or prompts.',
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
