// AGENT: runs inside a machine as `ubuntu`, alone, with nothing but Node. An sftp server (protocol 3) on
// standard input and output, for hosts without OpenSSH's. It handles one request at a time, in order: clients
// keep many requests in flight, so the disk never waits for the network.

import { constants, type Stats } from 'node:fs';
import * as fs from 'node:fs/promises';
import path from 'node:path';
import {
  type Attributes,
  Fields,
  long,
  type NameEntry,
  namesPacket,
  number,
  okPacket,
  packet,
  pathPacket,
  Refusal,
  refusalPacket,
  requestType,
  responseType,
  status,
  text,
} from './sftp-packets.ts';

const maxPacketBytes = 256 * 1024 + 1024;
const maxReadBytes = 255 * 1024;
const maxHandles = 256;
const maxNamesPerResponse = 100;

type Handle =
  | { readonly kind: 'file'; readonly file: fs.FileHandle; readonly append: boolean }
  | { readonly kind: 'directory'; readonly path: string; readonly names: string[] };

type Handler = (fields: Fields) => Promise<Buffer>;

const handles = new Map<string, Handle>();
let nextHandle = 0;

const handlers: Readonly<Record<number, Handler>> = {
  async [requestType.OPEN](fields) {
    const [name, flags, attributes] = [fields.text(), fields.number(), fields.attributes()];
    const file = await fs.open(name, toOpenFlags(flags), attributes.permissions ?? 0o666);
    return addHandle({ kind: 'file', file, append: (flags & 4) !== 0 });
  },
  async [requestType.CLOSE](fields) {
    const name = fields.text();
    const handle = handles.get(name);
    if (!handle) throw new Refusal(status.FAILURE, 'no such handle');
    handles.delete(name);
    if (handle.kind === 'file') await handle.file.close();
    return okPacket();
  },
  async [requestType.READ](fields) {
    const { file } = getFile(fields.text());
    const [offset, wanted] = [fields.offset(), Math.min(fields.number(), maxReadBytes)];
    const buffer = Buffer.allocUnsafe(wanted);
    const { bytesRead } = await file.read(buffer, 0, wanted, offset);
    if (bytesRead === 0) throw new Refusal(status.EOF, 'end of file');
    return packet(responseType.DATA, number(bytesRead), buffer.subarray(0, bytesRead));
  },
  async [requestType.WRITE](fields) {
    const { file, append } = getFile(fields.text());
    const [offset, data] = [fields.offset(), fields.bytes()];
    for (let at = 0; at < data.length; ) {
      const position = append ? null : offset + at;
      at += (await file.write(data, at, data.length - at, position)).bytesWritten;
    }
    return okPacket();
  },
  [requestType.STAT]: async (fields) => attributesPacket(await fs.stat(fields.text())),
  [requestType.LSTAT]: async (fields) => attributesPacket(await fs.lstat(fields.text())),
  [requestType.FSTAT]: async (fields) => attributesPacket(await getFile(fields.text()).file.stat()),
  async [requestType.SETSTAT](fields) {
    const file = fields.text();
    return setAttributes(fields.attributes(), {
      truncate: (size) => fs.truncate(file, size),
      chown: (user, group) => fs.chown(file, user, group),
      chmod: (mode) => fs.chmod(file, mode),
      utimes: (accessed, modified) => fs.utimes(file, accessed, modified),
    });
  },
  async [requestType.FSETSTAT](fields) {
    const { file } = getFile(fields.text());
    return setAttributes(fields.attributes(), file);
  },
  async [requestType.OPENDIR](fields) {
    const directory = fields.text();
    const names = await fs.readdir(directory);
    return addHandle({ kind: 'directory', path: directory, names: ['.', '..', ...names] });
  },
  async [requestType.READDIR](fields) {
    const handle = handles.get(fields.text());
    if (handle?.kind !== 'directory') throw new Refusal(status.FAILURE, 'no such handle');
    const names = handle.names.splice(0, maxNamesPerResponse);
    if (names.length === 0) throw new Refusal(status.EOF, 'no more names');
    return namesPacket(await Promise.all(names.map((name) => toEntry(handle.path, name))));
  },
  async [requestType.REMOVE](fields) {
    await fs.unlink(fields.text());
    return okPacket();
  },
  async [requestType.MKDIR](fields) {
    const [directory, attributes] = [fields.text(), fields.attributes()];
    await fs.mkdir(directory, { mode: attributes.permissions ?? 0o777 });
    return okPacket();
  },
  async [requestType.RMDIR](fields) {
    await fs.rmdir(fields.text());
    return okPacket();
  },
  async [requestType.REALPATH](fields) {
    const file = path.resolve(fields.text() || '.');
    return pathPacket(await fs.realpath(file).catch(() => file));
  },
  async [requestType.RENAME](fields) {
    const [from, to] = [fields.text(), fields.text()];
    // Version 3 must not replace the target, unlike the posix-rename extension; rename(2) would.
    if (await fs.lstat(to).catch(() => null)) throw new Refusal(status.FAILURE, 'target exists');
    await fs.rename(from, to);
    return okPacket();
  },
  [requestType.READLINK]: async (fields) => pathPacket(await fs.readlink(fields.text())),
  async [requestType.SYMLINK](fields) {
    // OpenSSH sends the target before the link, contrary to the draft; every client follows OpenSSH.
    const [target, link] = [fields.text(), fields.text()];
    await fs.symlink(target, link);
    return okPacket();
  },
  async [requestType.EXTENDED](fields) {
    const name = fields.text();
    if (!Object.hasOwn(extensions, name))
      throw new Refusal(status.UNSUPPORTED, 'unknown extension');
    return extensions[name]!.handle(fields);
  },
};

const extensions: Readonly<Record<string, { readonly version: string; readonly handle: Handler }>> =
  {
    'posix-rename@openssh.com': {
      version: '1',
      async handle(fields) {
        await fs.rename(fields.text(), fields.text());
        return okPacket();
      },
    },
    'hardlink@openssh.com': {
      version: '1',
      async handle(fields) {
        await fs.link(fields.text(), fields.text());
        return okPacket();
      },
    },
    'fsync@openssh.com': {
      version: '1',
      async handle(fields) {
        await getFile(fields.text()).file.sync();
        return okPacket();
      },
    },
    'statvfs@openssh.com': {
      version: '2',
      async handle(fields) {
        const disk = await fs.statfs(fields.text());
        const blocks = [disk.bsize, disk.bsize, disk.blocks, disk.bfree, disk.bavail];
        const inodes = [disk.files, disk.ffree, disk.ffree, 0, 0, 255];
        return packet(responseType.EXTENDED, ...[...blocks, ...inodes].map(long));
      },
    },
    'limits@openssh.com': {
      version: '1',
      async handle() {
        const limits = [maxPacketBytes, maxReadBytes, maxReadBytes, maxHandles];
        return packet(responseType.EXTENDED, ...limits.map(long));
      },
    },
  };

function versionPacket(): Buffer {
  const names = Object.entries(extensions).flatMap(([name, { version }]) => [name, version]);
  return packet(responseType.VERSION, number(3), ...names.map(text));
}

function toOpenFlags(flags: number): number {
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

function addHandle(handle: Handle): Buffer {
  if (handles.size >= maxHandles) {
    if (handle.kind === 'file') void handle.file.close();
    throw new Refusal(status.FAILURE, 'too many open handles');
  }
  nextHandle += 1;
  handles.set(String(nextHandle), handle);
  return packet(responseType.HANDLE, text(String(nextHandle)));
}

function getFile(name: string) {
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

async function setAttributes(attributes: Attributes, target: Changeable): Promise<Buffer> {
  const { size, owner, permissions, times } = attributes;
  if (size !== undefined) await target.truncate(size);
  if (permissions !== undefined) await target.chmod(permissions);
  if (times) await target.utimes(...times);
  if (owner) await target.chown(...owner);
  return okPacket();
}

async function toEntry(directory: string, name: string): Promise<NameEntry> {
  const stats = await fs.lstat(path.join(directory, name)).catch(() => null);
  if (!stats) return { name, long: name, attributes: number(0) };
  const day = stats.mtime.toISOString().slice(0, 10);
  const line = `${toModeText(stats)} ${stats.nlink} ${stats.uid} ${stats.gid} ${stats.size} ${day} ${name}`;
  return { name, long: line, attributes: toAttributes(stats) };
}

function toModeText(stats: Stats): string {
  const kind = stats.isDirectory() ? 'd' : stats.isSymbolicLink() ? 'l' : '-';
  const bits = [...(stats.mode & 0o777).toString(2).padStart(9, '0')];
  return kind + bits.map((bit, index) => (bit === '1' ? 'rwx'[index % 3] : '-')).join('');
}

function toAttributes(stats: Stats): Buffer {
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

function attributesPacket(stats: Stats): Buffer {
  return packet(responseType.ATTRS, toAttributes(stats));
}

/** Resolves once standard output has drained, so that a slow client holds the server back. */
async function send(response: Buffer, requestId: Buffer = Buffer.alloc(0)) {
  const head = [number(response.length + requestId.length), response.subarray(0, 1), requestId];
  process.stdout.write(Buffer.concat(head));
  // Separately, because a copy of the data would cost more than a second write.
  if (!process.stdout.write(response.subarray(1))) {
    await new Promise((resolve) => process.stdout.once('drain', resolve));
  }
}

async function serve() {
  let pending: Buffer = Buffer.alloc(0);
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    while (pending.length >= 4) {
      const length = pending.readUInt32BE();
      if (length < 5 || length > maxPacketBytes) throw new Error('packet too large');
      if (pending.length < 4 + length) break;
      const type = pending[4]!;
      const body = pending.subarray(5, 4 + length);
      pending = pending.subarray(4 + length);
      if (type === requestType.INIT) await send(versionPacket());
      else await send(await respond(type, new Fields(body.subarray(4))), body.subarray(0, 4));
    }
  }
}

async function respond(type: number, fields: Fields): Promise<Buffer> {
  try {
    const handle = handlers[type];
    if (!handle) throw new Refusal(status.UNSUPPORTED, 'unknown request');
    return await handle(fields);
  } catch (error) {
    return refusalPacket(error);
  }
}

process.stdout.on('error', () => process.exit(1));
await serve();
process.exit(0);
