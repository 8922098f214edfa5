// AGENT: runs inside a machine as `ubuntu`, alone, with nothing but Node. An sftp server (protocol 3) on
// standard input and output, for hosts without OpenSSH's own. Answers in order, one request at a time:
// clients keep many requests in flight, so the disk never waits for the network. One file, because it is
// handed to the machine as text.

import { constants, type Stats } from 'node:fs';
import * as fs from 'node:fs/promises';
import path from 'node:path';

const packetLimitBytes = 256 * 1024 + 1024;
const readLimitBytes = 255 * 1024;
const handleLimit = 256;
const namesPerAnswer = 100;

// biome-ignore format: a table of numbers
const asked = {
  INIT: 1, OPEN: 3, CLOSE: 4, READ: 5, WRITE: 6, LSTAT: 7, FSTAT: 8, SETSTAT: 9, FSETSTAT: 10,
  OPENDIR: 11, READDIR: 12, REMOVE: 13, MKDIR: 14, RMDIR: 15, REALPATH: 16, STAT: 17, RENAME: 18,
  READLINK: 19, SYMLINK: 20, EXTENDED: 200,
} as const;
const answered = {
  VERSION: 2,
  STATUS: 101,
  HANDLE: 102,
  DATA: 103,
  NAME: 104,
  ATTRS: 105,
  EXTENDED: 201,
};
const status = {
  OK: 0,
  EOF: 1,
  NO_SUCH_FILE: 2,
  PERMISSION_DENIED: 3,
  FAILURE: 4,
  BAD_MESSAGE: 5,
  UNSUPPORTED: 8,
};

type Handle =
  | { readonly kind: 'file'; readonly file: fs.FileHandle; readonly append: boolean }
  | { readonly kind: 'directory'; readonly path: string; readonly names: string[] };

class Refusal extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** Reads the fields of one packet; running over its end is the client's fault. */
class Fields {
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

interface Attributes {
  size?: number;
  owner?: [number, number];
  permissions?: number;
  times?: [number, number];
}

const handles = new Map<string, Handle>();
let nextHandle = 0;

async function answer(type: number, fields: Fields): Promise<Buffer> {
  switch (type) {
    case asked.OPEN: {
      const [file, flags, attributes] = [fields.text(), fields.number(), fields.attributes()];
      const handle = await fs.open(file, openFlags(flags), attributes.permissions ?? 0o666);
      return keep({ kind: 'file', file: handle, append: (flags & 4) !== 0 });
    }
    case asked.CLOSE: {
      const name = fields.text();
      const handle = handles.get(name);
      if (!handle) throw new Refusal(status.FAILURE, 'no such handle');
      handles.delete(name);
      if (handle.kind === 'file') await handle.file.close();
      return done();
    }
    case asked.READ: {
      const { file } = fileOf(fields.text());
      const [offset, wanted] = [fields.offset(), Math.min(fields.number(), readLimitBytes)];
      const buffer = Buffer.allocUnsafe(wanted);
      const { bytesRead } = await file.read(buffer, 0, wanted, offset);
      if (bytesRead === 0) throw new Refusal(status.EOF, 'end of file');
      return packet(answered.DATA, number(bytesRead), buffer.subarray(0, bytesRead));
    }
    case asked.WRITE: {
      const { file, append } = fileOf(fields.text());
      const [offset, data] = [fields.offset(), fields.bytes()];
      for (let at = 0; at < data.length; ) {
        const where = append ? null : offset + at;
        at += (await file.write(data, at, data.length - at, where)).bytesWritten;
      }
      return done();
    }
    case asked.STAT:
      return packet(answered.ATTRS, attributesOf(await fs.stat(fields.text())));
    case asked.LSTAT:
      return packet(answered.ATTRS, attributesOf(await fs.lstat(fields.text())));
    case asked.FSTAT:
      return packet(answered.ATTRS, attributesOf(await fileOf(fields.text()).file.stat()));
    case asked.SETSTAT: {
      const file = fields.text();
      return change(fields.attributes(), {
        truncate: (size) => fs.truncate(file, size),
        chown: (user, group) => fs.chown(file, user, group),
        chmod: (mode) => fs.chmod(file, mode),
        utimes: (accessed, modified) => fs.utimes(file, accessed, modified),
      });
    }
    case asked.FSETSTAT: {
      const { file } = fileOf(fields.text());
      return change(fields.attributes(), file);
    }
    case asked.OPENDIR: {
      const directory = fields.text();
      const names = await fs.readdir(directory);
      return keep({ kind: 'directory', path: directory, names: ['.', '..', ...names] });
    }
    case asked.READDIR: {
      const handle = handles.get(fields.text());
      if (handle?.kind !== 'directory') throw new Refusal(status.FAILURE, 'no such handle');
      const names = handle.names.splice(0, namesPerAnswer);
      if (names.length === 0) throw new Refusal(status.EOF, 'no more names');
      return listing(await Promise.all(names.map((name) => describe(handle.path, name))));
    }
    case asked.REMOVE:
      await fs.unlink(fields.text());
      return done();
    case asked.MKDIR: {
      const [directory, attributes] = [fields.text(), fields.attributes()];
      await fs.mkdir(directory, { mode: attributes.permissions ?? 0o777 });
      return done();
    }
    case asked.RMDIR:
      await fs.rmdir(fields.text());
      return done();
    case asked.REALPATH: {
      const file = path.resolve(fields.text() || '.');
      const real = await fs.realpath(file).catch(() => file);
      return listing([{ name: real, long: real, attributes: number(0) }]);
    }
    case asked.RENAME: {
      const [from, to] = [fields.text(), fields.text()];
      // Version 3 refuses to replace; the extension below may. A link can't overwrite, a rename can.
      if (await fs.lstat(to).catch(() => null)) throw new Refusal(status.FAILURE, 'target exists');
      await fs.rename(from, to);
      return done();
    }
    case asked.READLINK: {
      const target = await fs.readlink(fields.text());
      return listing([{ name: target, long: target, attributes: number(0) }]);
    }
    case asked.SYMLINK: {
      // OpenSSH sends target and link in this order, against the draft; every client follows it.
      const [target, link] = [fields.text(), fields.text()];
      await fs.symlink(target, link);
      return done();
    }
    case asked.EXTENDED:
      return extend(fields.text(), fields);
    default:
      throw new Refusal(status.UNSUPPORTED, 'unknown request');
  }
}

async function extend(name: string, fields: Fields): Promise<Buffer> {
  switch (name) {
    case 'posix-rename@openssh.com':
      await fs.rename(fields.text(), fields.text());
      return done();
    case 'hardlink@openssh.com':
      await fs.link(fields.text(), fields.text());
      return done();
    case 'fsync@openssh.com':
      await fileOf(fields.text()).file.sync();
      return done();
    case 'statvfs@openssh.com': {
      const disk = await fs.statfs(fields.text());
      const values = [disk.bsize, disk.bsize, disk.blocks, disk.bfree, disk.bavail];
      const inodes = [disk.files, disk.ffree, disk.ffree, 0, 0, 255];
      return packet(answered.EXTENDED, ...[...values, ...inodes].map(long));
    }
    case 'limits@openssh.com': {
      const limits = [packetLimitBytes, readLimitBytes, readLimitBytes, handleLimit];
      return packet(answered.EXTENDED, ...limits.map(long));
    }
    default:
      throw new Refusal(status.UNSUPPORTED, 'unknown extension');
  }
}

function version(): Buffer {
  const extensions = [
    ['posix-rename@openssh.com', '1'],
    ['hardlink@openssh.com', '1'],
    ['fsync@openssh.com', '1'],
    ['statvfs@openssh.com', '2'],
    ['limits@openssh.com', '1'],
  ].flat();
  const body = Buffer.concat([number(3), ...extensions.map(text)]);
  return Buffer.concat([number(body.length + 1), Buffer.from([answered.VERSION]), body]);
}

function openFlags(flags: number): number {
  const access =
    (flags & 3) === 3 ? constants.O_RDWR : flags & 2 ? constants.O_WRONLY : constants.O_RDONLY;
  return (
    access |
    (flags & 4 ? constants.O_APPEND : 0) |
    (flags & 8 ? constants.O_CREAT : 0) |
    (flags & 16 ? constants.O_TRUNC : 0) |
    (flags & 32 ? constants.O_EXCL : 0)
  );
}

function keep(handle: Handle): Buffer {
  if (handles.size >= handleLimit) {
    if (handle.kind === 'file') void handle.file.close();
    throw new Refusal(status.FAILURE, 'too many open handles');
  }
  nextHandle += 1;
  handles.set(String(nextHandle), handle);
  return packet(answered.HANDLE, text(String(nextHandle)));
}

function fileOf(name: string) {
  const handle = handles.get(name);
  if (handle?.kind !== 'file') throw new Refusal(status.FAILURE, 'no such handle');
  return handle;
}

interface Changeable {
  truncate(size: number): Promise<void>;
  chown(user: number, group: number): Promise<void>;
  chmod(mode: number): Promise<void>;
  utimes(accessed: number, modified: number): Promise<void>;
}

async function change(attributes: Attributes, target: Changeable): Promise<Buffer> {
  const { size, owner, permissions, times } = attributes;
  if (size !== undefined) await target.truncate(size);
  if (permissions !== undefined) await target.chmod(permissions);
  if (times) await target.utimes(...times);
  if (owner) await target.chown(...owner);
  return done();
}

async function describe(directory: string, name: string) {
  const stats = await fs.lstat(path.join(directory, name)).catch(() => null);
  if (!stats) return { name, long: name, attributes: number(0) };
  const day = stats.mtime.toISOString().slice(0, 10);
  const long = `${letters(stats)} ${stats.nlink} ${stats.uid} ${stats.gid} ${stats.size} ${day} ${name}`;
  return { name, long, attributes: attributesOf(stats) };
}

function letters(stats: Stats): string {
  const kind = stats.isDirectory() ? 'd' : stats.isSymbolicLink() ? 'l' : '-';
  const bits = [...(stats.mode & 0o777).toString(2).padStart(9, '0')];
  return kind + bits.map((bit, index) => (bit === '1' ? 'rwx'[index % 3] : '-')).join('');
}

function attributesOf(stats: Stats): Buffer {
  const seconds = (time: Date) => number(Math.max(0, Math.floor(time.getTime() / 1000)));
  return Buffer.concat([
    number(15),
    long(stats.size),
    number(stats.uid),
    number(stats.gid),
    number(stats.mode),
    seconds(stats.atime),
    seconds(stats.mtime),
  ]);
}

function listing(entries: { name: string; long: string; attributes: Buffer }[]): Buffer {
  const fields = entries.flatMap((entry) => [text(entry.name), text(entry.long), entry.attributes]);
  return packet(answered.NAME, number(entries.length), ...fields);
}

/** Everything after the request's id, which the sender puts in. */
function packet(type: number, ...fields: Buffer[]): Buffer {
  return Buffer.concat([Buffer.from([type]), ...fields]);
}

function done(): Buffer {
  return packet(answered.STATUS, number(status.OK), text('OK'), text(''));
}

const codes: Record<string, number> = {
  ENOENT: status.NO_SUCH_FILE,
  EACCES: status.PERMISSION_DENIED,
  EPERM: status.PERMISSION_DENIED,
  EROFS: status.PERMISSION_DENIED,
};

function refuse(error: unknown): Buffer {
  const { code, message } = error as { code?: string | number; message?: string };
  const reason = typeof code === 'number' ? code : (codes[code ?? ''] ?? status.FAILURE);
  return packet(answered.STATUS, number(reason), text(message ?? 'failure'), text(''));
}

function number(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

function long(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([number(bytes.length), bytes]);
}

async function send(bytes: Buffer) {
  if (!process.stdout.write(bytes)) {
    await new Promise((resolve) => process.stdout.once('drain', resolve));
  }
}

async function serve() {
  let pending: Buffer = Buffer.alloc(0);
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    while (pending.length >= 4) {
      const length = pending.readUInt32BE();
      if (length < 5 || length > packetLimitBytes) throw new Error('packet too large');
      if (pending.length < 4 + length) break;
      const type = pending[4]!;
      const body = pending.subarray(5, 4 + length);
      pending = pending.subarray(4 + length);
      if (type === asked.INIT) {
        await send(version());
        continue;
      }
      const reply = await answer(type, new Fields(body.subarray(4))).catch(refuse);
      const head = Buffer.concat([
        number(reply.length + 4),
        reply.subarray(0, 1),
        body.subarray(0, 4),
      ]);
      await send(head);
      await send(reply.subarray(1));
    }
  }
}

process.stdout.on('error', () => process.exit(1));
await serve();
process.exit(0);
