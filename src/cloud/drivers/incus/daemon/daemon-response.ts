// The daemon's JSON responses, and its errors as DriverErrors: permanent or worth a retry.

import { DriverError } from '#cloud/drivers/driver.ts';

export interface DaemonResponse {
  readonly type: string;
  readonly error_code?: number;
  readonly error?: string;
  readonly metadata: unknown;
}

/** Carries the daemon's own code, so that callers can tell a missing thing from a busy daemon. */
export class DaemonError extends DriverError {
  readonly code: number;

  constructor(code: number, message: string) {
    super(isPermanent(message) ? 'impossible' : 'unavailable', message);
    this.name = 'DaemonError';
    this.code = code;
  }
}

/**
 * True for errors that no retry fixes. Any other may be a temporary failure of the daemon, a member or a disk. The
 * message decides, because for every failed operation LXD reports 400 and Incus 500.
 */
function isPermanent(message: string): boolean {
  return /\binvalid\b|not supported|unsupported|KVM support|failed to detect requested gpu|NVIDIA container tools/i.test(
    message,
  );
}

/** `request` names the request in errors, e.g. `GET /1.0`. */
export function parseResponse(bytes: Buffer, request: string): DaemonResponse {
  const response = parseJson(bytes);
  if (response === null || response.type === 'error') throw toDaemonError(bytes, request);
  return response;
}

export function toDaemonError(bytes: Buffer, request: string): DriverError {
  const response = parseJson(bytes);
  if (response === null) {
    return new DriverError('unavailable', `${request} did not return a JSON object.`);
  }
  return new DaemonError(response.error_code ?? 500, response.error || `${request} was refused.`);
}

function parseJson(bytes: Buffer): DaemonResponse | null {
  try {
    const value = JSON.parse(bytes.toString());
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}
