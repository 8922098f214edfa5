// Converts the `telemetry` section of the configuration into the options of traces.

import type { Config } from '#config/schema.ts';

/** Null if there is no collector. */
export function toTraceOptions({ telemetry }: Config) {
  const { otlp_url: url, otlp_headers: headers, sample_ratio: sampleRatio } = telemetry;
  return url === null ? null : { url, headers, sampleRatio };
}
