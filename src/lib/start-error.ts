// The reason why the server can't start, as a sentence for the person who starts it. Thrown where the reason is
// known, so that it need not be guessed from an error code later.

export class StartError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'StartError';
  }
}

const reasons: Record<string, string> = {
  ENOENT: 'no such file',
  ENOTDIR: 'part of the path is not a directory',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the disk is read-only',
  ENOSPC: 'the disk is full',
};

/** Completes a sentence such as "x can't be read: ". */
export function toReason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return reasons[code ?? ''] ?? (message || String(code ?? error));
}
