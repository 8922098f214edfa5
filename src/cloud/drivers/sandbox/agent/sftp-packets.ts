// AGENT: the packets of sftp protocol 3, read and written. Part of the program in sftp-server.ts, so it
// imports nothing.

// biome-ignore format: a table of numbers
export const requestType = {
  INIT: 1, OPEN: 3, CLOSE: 4, READ: 5, WRITE: 6, LSTAT: 7, FSTAT: 8, SETSTAT: 9, FSETSTAT: 10,
  OPENDIR: 11, READDIR: 12, REMOVE: 13, MKDIR: 14, RMDIR: 15, REALPATH: 16, STAT: 17, RENAME: 18,
  READLINK: 19, SYMLINK: 20, EXTENDED: 200,
} as const;
// biome-ignore format: a table of numbers
export const responseType = {
  VERSION: 2, STATUS: 101, HANDLE: 102, DATA: 103, NAME: 104, ATTRS: 105, EXTENDED: 201,
} as const;
// biome-ignore format: a table of numbers
export const status = {
  OK: 0, EOF: 1, NO_SUCH_FILE: 2, PERMISSION_DENIED: 3, FAILURE: 4, BAD_MESSAGE: 5, UNSUPPORTED: 8,
} as const;

/** A failure with the status code that the client receives. */
export class Refusal extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export interface Attributes {
  size?: number;
  owner?: [user: number, group: number];
  permissions?: number;
  times?: [accessed: number, modified: number];
}

/** Reads the fields of one request in order. Reading beyond its end is a bad message. */
export class Fields {
  readonly #bytes: Buffer;
  #at = 0;
  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }
  number(): number {
    return this.#take(4).readUInt32BE();
  }
  offset(): number {
    const value = this.#take(8).readBigUInt64BE();
    if (value > BigInt(Number.MAX_SAFE_INTEGER))
      throw new Refusal(status.FAILURE, 'offset too large');
    return Number(value);
  }
  bytes(): Buffer {
    return this.#take(this.number());
  }
  text(): string {
    return this.bytes().toString('utf8');
  }
  attributes(): Attributes {
    const flags = this.number();
    const attributes: Attributes = {};
    if (flags & 1) attributes.size = this.offset();
    if (flags & 2) attributes.owner = [this.number(), this.number()];
    if (flags & 4) attributes.permissions = this.number() & 0o7777;
    if (flags & 8) attributes.times = [this.number(), this.number()];
    return attributes;
  }
  #take(length: number): Buffer {
    if (this.#at + length > this.#bytes.length)
      throw new Refusal(status.BAD_MESSAGE, 'packet too short');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}

/** Builds a response without its length and request id, which the sender adds. */
export function packet(type: number, ...fields: Buffer[]): Buffer {
  return Buffer.concat([Buffer.from([type]), ...fields]);
}

export function okPacket(): Buffer {
  return packet(responseType.STATUS, number(status.OK), text('OK'), text(''));
}

export function refusalPacket(error: unknown): Buffer {
  const codes: Record<string, number> = {
    ENOENT: status.NO_SUCH_FILE,
    EACCES: status.PERMISSION_DENIED,
    EPERM: status.PERMISSION_DENIED,
    EROFS: status.PERMISSION_DENIED,
  };
  const { code, message } = error as { code?: string | number; message?: string };
  const reason = typeof code === 'number' ? code : (codes[code ?? ''] ?? status.FAILURE);
  return packet(responseType.STATUS, number(reason), text(message ?? 'failure'), text(''));
}

export interface NameEntry {
  readonly name: string;
  /** The line that `ls -l` prints for the name. */
  readonly long: string;
  readonly attributes: Buffer;
}

export function namesPacket(entries: readonly NameEntry[]): Buffer {
  const fields = entries.flatMap((entry) => [text(entry.name), text(entry.long), entry.attributes]);
  return packet(responseType.NAME, number(entries.length), ...fields);
}

/** A single name without attributes, as REALPATH and READLINK return it. */
export function pathPacket(path: string): Buffer {
  return namesPacket([{ name: path, long: path, attributes: number(0) }]);
}

export function number(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

export function long(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

export function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([number(bytes.length), bytes]);
}
