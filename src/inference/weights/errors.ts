// The errors of a pull, as sentences for people: those of the dashboard's endpoints, plus the failures of a hub and
// of a disk.

import { accountsErrorFormat } from '#accounts/errors.ts';
import type { ErrorFormat } from '#http/error-format.ts';
import { conflict, forbidden, invalidBody } from '#lib/errors.ts';

/** Only `unavailable` is worth a retry. */
export type PullErrorCode = 'unavailable' | 'denied' | 'missing' | 'corrupt' | 'no_space';

const statuses: Record<PullErrorCode, number> = {
  unavailable: 502,
  denied: 400,
  missing: 400,
  corrupt: 502,
  no_space: 507,
};

export class PullError extends Error {
  readonly code: PullErrorCode;
  readonly retryAfterMs: number;

  constructor(code: PullErrorCode, message: string, retryAfterMs = 0) {
    super(message);
    this.name = 'PullError';
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

export const weightsErrorFormat: ErrorFormat = {
  ...accountsErrorFormat,
  renderOwn(error) {
    if (!(error instanceof PullError)) return accountsErrorFormat.renderOwn(error);
    const { code, message } = error;
    return {
      status: statuses[code],
      body: { error: { code: `hub_${code}`, message, param: null } },
    };
  },
};

export const hubUnavailable = (hub: string, reason: string, retryAfterMs?: number) =>
  new PullError('unavailable', `The hub ${hub} is unavailable: ${reason}.`, retryAfterMs);

export const endedEarly = (file: string) =>
  new PullError('unavailable', `The hub stopped sending ${file} before its end.`);

export const hubDenied = (hub: string, repo: string, hasToken: boolean) =>
  new PullError(
    'denied',
    `${repo} does not exist on ${hub}, or is private or gated. ` +
      (hasToken
        ? `Accept its terms at ${hub}/${repo} with the account of the configured token.`
        : `If it is, accept its terms at ${hub}/${repo} and set models.hub_token or HF_TOKEN.`),
  );

export const hubMissing = (hub: string, what: string) =>
  new PullError('missing', `${what} does not exist on ${hub}.`);

export const wrongChecksum = (file: string) =>
  new PullError(
    'corrupt',
    `${file} does not have the checksum that the hub states. What came was thrown away.`,
  );

export const wrongSize = (file: string, bytes: number) =>
  new PullError('corrupt', `${file} is not the ${bytes} bytes that the hub states.`);

export const notSound = (file: string, why: string) =>
  new PullError('corrupt', `${file} ${why}. It was thrown away. Pull other weights.`);

export const noChecksum = (file: string) =>
  new PullError(
    'corrupt',
    `The hub states no checksum and size for ${file}, so it can't be verified.`,
  );

export const noSpace = (needed: number, free: number, reserve: number) =>
  new PullError(
    'no_space',
    `This needs ${toGib(needed)} more on disk; ${toGib(free)} are free, of which ` +
      `${toGib(reserve)} stay reserved (models.disk_reserve_gib).`,
  );

export const diskFull = () =>
  new PullError('no_space', 'The disk is full. Make room and pull again: it goes on where it was.');

export const goneFromDisk = (name: string) =>
  new PullError('corrupt', `Files of ${name} went away while it was pulled. Pull it again.`);

export const badRepo = (text: string) =>
  invalidBody(
    `${JSON.stringify(text.slice(0, 100))} names no repository. ` +
      'Write owner/name, owner/name@revision, owner/name/file.gguf or hf.co/owner/name.',
    'repo',
  );

export const badFile = (text: string) =>
  invalidBody(`${JSON.stringify(text.slice(0, 100))} is not the name of a GGUF file.`, 'file');

export const notOneSource = () => invalidBody('Give either model or repo.', 'repo');

export const noKnownRepo = (id: string) =>
  invalidBody(
    `No GGUF of ${id} is known on a hub. Pull one you know of with "as": "${id}".`,
    'model',
  );

export const noGguf = (repo: string) => invalidBody(`${repo} holds no GGUF weights.`, 'repo');

export const noModel = (repo: string) =>
  invalidBody(
    `${repo} holds no weights for vLLM and SGLang: no config.json and safetensors. Name a repository with both, or use llama-server with a GGUF file.`,
    'repo',
  );

export const tooManyFiles = (repo: string, max: number) =>
  invalidBody(
    `${repo} has more than ${max} files, or very long names. Name a smaller repository.`,
    'repo',
  );

export const noSuchFile = (repo: string, file: string, there: readonly string[]) =>
  invalidBody(`${repo} has no ${file}. It has: ${toList(there)}.`, 'file');

export const noSuchQuant = (repo: string, quant: string | null, there: readonly string[]) =>
  invalidBody(
    quant === null
      ? `Which weights of ${repo}? Name a file. It has: ${toList(there)}.`
      : `${repo} has no ${quant}. It has: ${toList(there)}.`,
    'quant',
  );

export const incompleteSplit = (repo: string, file: string) =>
  invalidBody(`${repo} lacks some of the parts that ${file} belongs to.`, 'file');

export const isInUse = (name: string, deployments: readonly string[]) =>
  conflict(`${toUse(name, deployments)} Remove that first.`);

export const onlyOwners = (name: string, deployments: readonly string[]) =>
  forbidden(`${toUse(name, deployments)} Only an owner may pull it again or cancel its pull.`);

const toUse = (name: string, deployments: readonly string[]) =>
  `${name} is used by ${deployments.length === 1 ? 'the deployment' : 'the deployments'} ` +
  `${deployments.join(', ')}.`;

export const alreadyPulled = (name: string) => conflict(`${name} is being pulled already.`);
export const tooManyPulls = (limit: number) => conflict(`${limit} pulls are waiting already.`);
export const pullIsOver = (state: string) => conflict(`This pull is ${state} already.`);

function toList(names: readonly string[]): string {
  const shown = names.slice(0, 40).join(', ');
  return names.length > 40 ? `${shown} and ${names.length - 40} more` : shown;
}

const toGib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(bytes < 2 ** 30 ? 3 : 1)} GiB`;
