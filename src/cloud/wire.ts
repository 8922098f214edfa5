// How the cloud API writes ids and times.

/** `2025-11-13T19:45:33.104000+00:00`. */
export const toWireTime = (ms: number): string =>
  new Date(ms).toISOString().replace('Z', '000+00:00');

/** `2025-11-13T19:45:33.104000Z`, the format of audit events. */
export const toEventTime = (ms: number): string => new Date(ms).toISOString().replace('Z', '000Z');

/** Clients may send ids with dashes and in upper case; they are stored without dashes and in lower case. */
export const toId = (id: string): string => id.replaceAll('-', '').toLowerCase();
