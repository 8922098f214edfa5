// The errors of the cloud API: everything that /api/v1 can tell a client. Clients match on the codes and on
// some of the sentences, which contract tests fix.

import type { ErrorFormat, Rendered } from '#http/error-format.ts';
import { type DiskFigures, describeDisk, type RefusalCode } from '#lib/errors.ts';
import { toPathText, type Violation, valueAt } from '#lib/schema/validation-error.ts';

export class CloudError extends Error {
  readonly status: number;
  readonly code: string;
  readonly suggestion: string | undefined;

  constructor(status: number, code: string, message: string, suggestion?: string) {
    super(message);
    this.name = 'CloudError';
    this.status = status;
    this.code = code;
    this.suggestion = suggestion;
  }
}

const fixParameters = 'Retry the request after fixing the request parameters.';

export const invalidParameters = (message: string) =>
  new CloudError(400, 'global/invalid-parameters', message, fixParameters);

export const sshKeyNameTaken = (name: string) =>
  invalidParameters(`An SSH key is called '${name}' already; the name must be unique.`);

const notFound = (message: string, suggestion: string) =>
  new CloudError(404, 'global/not-found', message, suggestion);

export const sshKeyNotFound = () =>
  notFound('Specified SSH key does not exist.', 'Check the SSH key ID and try again.');

export const resourceNotFound = () =>
  notFound('The requested resource was not found.', 'Check the ID and try again.');

export const ticketNotFound = () =>
  notFound('Ticket not found.', 'Check the ticket ID and try again.');

export const ticketsNotOffered = () =>
  new CloudError(
    403,
    'global/forbidden',
    'This cloud has no support tickets.',
    'Contact your operator directly.',
  );

export const fabricNotOffered = (region: string) =>
  invalidParameters(`Region ${shorten(region)} has no fabric partitions.`);

export const instanceNotFound = () =>
  new CloudError(
    404,
    'global/object-does-not-exist',
    'Specified instance does not exist.',
    'Check the instance ID and try again.',
  );

export const quotaExceeded = () =>
  new CloudError(
    400,
    'global/quota-exceeded',
    'Quota exceeded.',
    'Delete what you no longer need, or ask your operator to raise the quota.',
  );

const doesNotExist = (message: string, suggestion: string) =>
  new CloudError(404, 'global/object-does-not-exist', message, suggestion);

/**
 * Version 1.10.0 of the published API allows no other code here, and strict clients refuse one.
 * Clients of version 1.5.3 and older knew `ssh-keys/key-in-use`.
 */
export const keyInUse = () =>
  new CloudError(
    400,
    'global/invalid-parameters',
    'Key is currently in use, cannot delete',
    'Terminate the instances that were launched with it first, or say with machines=keep or machines=refuse what they do with it.',
  );

/** One client searches errors with this code for "Region" and "does not exist". */
export const regionNotFound = (name: string) =>
  invalidParameters(`Region ${shorten(name)} does not exist`);

export const tooManyInstances = () => invalidParameters('Requested too many instances.');

export const typeNotFound = (name: string) =>
  doesNotExist(
    `Instance type '${shorten(name)}' does not exist.`,
    'Choose a name from the instance types and try again.',
  );

export const launchKeyNotFound = (name: string) =>
  doesNotExist(
    `SSH key with name '${shorten(name)}' does not exist, or you do not have permission to access it.`,
    'Add the SSH key to your account, or choose another, and try again.',
  );

export const imageNotFound = (name: string, region: string) =>
  doesNotExist(
    `Image '${shorten(name)}' does not exist in region '${region}'.`,
    'Choose an image from the list of images and try again.',
  );

export const launchFilesystemNotFound = (name: string, region: string) =>
  doesNotExist(
    `Filesystem with name '${shorten(name)}' does not exist in region '${region}', or you do not have permission to access it.`,
    'Choose a filesystem in the same region as the instance and try again.',
  );

const noCapacity = 'instance-operations/launch/insufficient-capacity';

export const insufficientCapacity = () =>
  new CloudError(
    400,
    noCapacity,
    'Not enough capacity to fulfill launch request.',
    'Choose an instance type with more availability, or try again later.',
  );

/** A launch that only the disk forbids. Its code is one that clients of the original API know. */
export const insufficientDisk = (storageGib: number, disk: DiskFigures) =>
  new CloudError(
    507,
    noCapacity,
    `Not enough capacity to fulfill launch request: its disk takes ${storageGib} GiB, and the disk of the server is almost full: ${describeDisk(disk)}.`,
    'Launch a smaller type, try again when other machines or filesystems are gone, or ask your operator to free some space.',
  );

/** For machines of deployments, which must be on a host that their server reaches. */
export const noHostOffers = (type: string) =>
  new CloudError(400, noCapacity, `No host that this server reaches offers ${type}.`);

export const isCapacityMissing = (error: unknown): boolean =>
  error instanceof CloudError && error.code === noCapacity;

export const instanceBusy = () =>
  new CloudError(
    409,
    'global/conflict',
    'The request conflicts with the current state of the resource.',
    "Wait until the instance's actions say that this is possible, then try again.",
  );

export const filesystemNameTaken = (name: string) =>
  new CloudError(
    400,
    'global/duplicate',
    `A filesystem is called '${name}' already.`,
    'Choose another name.',
  );

export const filesystemNotFound = () =>
  doesNotExist('Filesystem was not found.', 'Check the filesystem ID and try again.');

export const filesystemInUse = () =>
  new CloudError(
    400,
    'filesystems/filesystem-in-use',
    'Filesystem is in use by one or more instances.',
    'Terminate the instances that use it, wait until they are gone, and try again.',
  );

export const rulesetNotFound = () =>
  doesNotExist(
    'Firewall ruleset does not exist or you do not have permission to access it.',
    'Check your firewall ruleset ID and try again.',
  );

export const rulesetInUse = () =>
  new CloudError(
    400,
    'firewall-rulesets/firewall-ruleset-in-use',
    'Firewall ruleset is in use by one or more instances.',
    'Terminate all instances that are using the ruleset before deleting it.',
  );

/** Shortens input that a message quotes. */
const shorten = (text: string) => (text.length > 80 ? `${text.slice(0, 80)}...` : text);

const refusals: Record<RefusalCode, { code: string; message?: string; suggestion?: string }> = {
  no_credentials: {
    code: 'global/invalid-api-key',
    message: 'API key was invalid, expired, or deleted.',
    suggestion: 'Check your API key or create a new one, then try again.',
  },
  invalid_credentials: {
    code: 'global/invalid-api-key',
    message: 'API key was invalid, expired, or deleted.',
    suggestion: 'Check your API key or create a new one, then try again.',
  },
  forbidden: { code: 'global/forbidden', suggestion: 'Use a key or a role that may do this.' },
  unknown_url: { code: 'global/not-found', message: 'The requested resource was not found.' },
  method_not_allowed: { code: 'global/invalid-parameters' },
  invalid_http: { code: 'global/invalid-parameters' },
  expectation_failed: { code: 'global/invalid-parameters' },
  invalid_json: { code: 'global/invalid-parameters', suggestion: fixParameters },
  invalid_body: { code: 'global/invalid-parameters', suggestion: fixParameters },
  unsupported_media_type: { code: 'global/invalid-parameters', suggestion: fixParameters },
  too_large: { code: 'global/invalid-parameters', suggestion: fixParameters },
  rate_limited: {
    code: 'global/too-many-requests',
    suggestion: 'Wait for the number of seconds in retry-after, then try again.',
  },
  not_found: { code: 'global/object-does-not-exist', suggestion: 'Check the ID and try again.' },
  conflict: { code: 'global/conflict' },
  misdirected: { code: 'global/invalid-parameters' },
  timed_out: { code: 'global/invalid-parameters', suggestion: 'Try again' },
  overloaded: { code: 'provider/internal-unavailable', suggestion: 'Try again shortly' },
  shutting_down: { code: 'provider/internal-unavailable', suggestion: 'Try again shortly' },
  database_unavailable: {
    code: 'provider/internal-unavailable',
    suggestion: 'Wait for the number of seconds in retry-after, then try again.',
  },
  disk_full: { code: 'provider/disk-full', suggestion: 'Ask your operator to free disk space.' },
  internal: {
    code: 'global/internal-error',
    message: 'An internal server error occurred.',
    suggestion: 'Try again later. The x-request-id header names the entry in the server log.',
  },
};

export const cloudErrorFormat: ErrorFormat = {
  renderRefusal(refusal): Rendered {
    const { code, message = refusal.message, suggestion } = refusals[refusal.code];
    const headers: Record<string, string> =
      refusal.retryAfterMs === null
        ? {}
        : { 'retry-after': String(Math.ceil(refusal.retryAfterMs / 1000)) };
    // The contract has no 413.
    const status = refusal.code === 'too_large' ? 400 : refusal.status;
    return { status, headers, body: toBody(code, message, suggestion) };
  },

  renderViolation(violation, part, value): Rendered {
    const place = { body: 'request body', params: 'request path', querystring: 'request query' }[
      part
    ];
    const at = violation.path.length === 0 ? '' : ` at '${toPathText(violation.path)}'`;
    const message = `Error in ${place ?? 'request'}${at}: ${explain(violation, value)}`;
    return { status: 400, body: toBody('global/invalid-parameters', message, fixParameters) };
  },

  renderOwn(error): Rendered | undefined {
    if (!(error instanceof CloudError)) return undefined;
    return { status: error.status, body: toBody(error.code, error.message, error.suggestion) };
  },
};

/** A missing suggestion is left out: clients' types have no null there. */
function toBody(code: string, message: string, suggestion: string | undefined) {
  return { error: { code, message, ...(suggestion === undefined ? {} : { suggestion }) } };
}

const typeNames: Record<string, string> = {
  string: 'string',
  integer: 'integer',
  number: 'number',
  boolean: 'boolean',
  array: 'list',
  object: 'dictionary',
};

function explain({ kind, expected, exclusive, path }: Violation, value: unknown): string {
  const bound = expected[0] ?? '';
  const plural = bound === '1' ? '' : 's';
  switch (kind) {
    case 'missing':
      return 'Field required';
    case 'type':
      return `Input should be a valid ${expected.map((type) => typeNames[type] ?? type).join(' or ')}`;
    case 'too_small':
      return `Input should be greater than ${exclusive ? '' : 'or equal to '}${bound}`;
    case 'too_large':
      return `Input should be less than ${exclusive ? '' : 'or equal to '}${bound}`;
    case 'too_short':
      return `String should have at least ${bound} character${plural}`;
    case 'too_long':
      return `String should have at most ${bound} character${plural}`;
    case 'too_few':
      return `List should have at least ${bound} item${plural} after validation`;
    case 'too_many':
      return `List should have at most ${bound} item${plural} after validation`;
    case 'not_allowed':
      return `Input should be ${expected.map((value) => `'${value}'`).join(' or ')}`;
    case 'format':
      return bound === idPattern
        ? `Input should be a valid UUID${explainLength(valueAt(value, path))}`
        : `String should match pattern '${bound}'`;
    default:
      return 'Input is not valid';
  }
}

/** The contract words the length only for ids without hyphens. */
function explainLength(id: unknown): string {
  const isPlain = typeof id === 'string' && id.length !== 32 && !id.includes('-');
  return isPlain
    ? `, invalid length: expected length 32 for simple format, found ${id.length}`
    : '';
}

/** A path id that is not a UUID results in a 400, on which one client falls back to names. */
export const idPattern = '^([0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$';
