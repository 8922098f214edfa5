// Timestamps in the cloud API's formats: with microseconds, and with an offset or a Z.

/** `2025-11-13T19:45:33.104000+00:00`. */
export const toWireTime = (ms: number): string =>
  new Date(ms).toISOString().replace('Z', '000+00:00');

/** `2025-11-13T19:45:33.104000Z`, the format of audit events. */
export const toEventTime = (ms: number): string => new Date(ms).toISOString().replace('Z', '000Z');
