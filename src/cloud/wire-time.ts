// Times as the cloud API spells them: microseconds, with an offset or with a Z.

/** `2025-11-13T19:45:33.104000+00:00`. */
export const toWireTime = (ms: number): string =>
  new Date(ms).toISOString().replace('Z', '000+00:00');

/** `2025-11-13T19:45:33.104000Z`, as audit events have it. */
export const toEventTime = (ms: number): string => new Date(ms).toISOString().replace('Z', '000Z');
