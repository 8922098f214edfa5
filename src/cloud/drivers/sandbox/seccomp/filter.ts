// The seccomp filter of a machine as classic BPF: every system call it makes runs through this program. A
// refused call fails with an error, so that programs can fall back; none kills its process.

import { constants } from 'node:os';
import type { Architecture } from '#cloud/drivers/sandbox/native/instructions.ts';
import { inspected, nesting, newestKnown, refused } from './syscalls.ts';

export interface FilterOptions {
  /** Allows namespaces, mounts and packet filters of the machine's own. */
  readonly nested: boolean;
}

/** Offsets in the kernel's `seccomp_data`. The low half of an argument comes first. */
const numberAt = 0;
const architectureAt = 4;
const argumentAt = (index: number) => 16 + 8 * index;

const auditArchitecture: Readonly<Record<Architecture, number>> = {
  x64: 0xc000003e,
  arm64: 0xc00000b7,
};

/** Flags of clone and unshare that create namespaces; unshare alone knows the one for time. */
const cloneNamespaces = 0x7e020000;
const timeNamespace = 0x80;
/** Unix, IPv4, IPv6, netlink and packet sockets. Others, such as vsock and the crypto API, are refused. */
const socketFamilies = [1, 2, 10, 16, 17];
const netlinkFamily = 16;
const netfilterProtocol = 12;
/** Linux, and 32-bit Linux with or without a host name of old kernels; all ones only asks. */
const personalities = [0, 8, 0x20000, 0x20008, 0xffffffff];

type Instruction = readonly [code: number, whenTrue: number, whenFalse: number, value: number];

const load = (offset: number): Instruction => [0x20, 0, 0, offset];
const give = (result: number): Instruction => [0x06, 0, 0, result];
const skipIfEqual = (value: number, count: number): Instruction => [0x15, count, 0, value];
const skipUnlessEqual = (value: number, count: number): Instruction => [0x15, 0, count, value];
const skipUnlessAbove = (value: number, count: number): Instruction => [0x25, 0, count, value];
const skipUnlessAnyBit = (value: number, count: number): Instruction => [0x45, 0, count, value];

const allow = give(0x7fff0000);
const fail = (errno: number) => give(0x00050000 | errno);
const notPermitted = fail(constants.errno.EPERM);
const notImplemented = fail(constants.errno.ENOSYS);

export function toFilter(architecture: Architecture, { nested }: FilterOptions): Buffer {
  const numbers = (calls: typeof refused) =>
    Object.values(calls).flatMap((each) => each[architecture] ?? []);
  const refusedNumbers = [...numbers(refused), ...(nested ? [] : numbers(nesting))];
  const judge = (name: keyof typeof inspected, body: readonly Instruction[]) =>
    when(inspected[name][architecture], body);
  return toBytes([
    load(architectureAt),
    skipIfEqual(auditArchitecture[architecture], 1),
    notImplemented,
    load(numberAt),
    // Also refuses x32, a second ABI of x86-64: its numbers have bit 30 set.
    skipUnlessAbove(newestKnown, 1),
    notImplemented,
    ...refusedNumbers.flatMap((number) => when(number, [notPermitted])),
    ...judge('socket', judgeSocket(nested)),
    ...judge('personality', [load(argumentAt(0)), ...allowEqual(personalities), notPermitted]),
    ...(nested
      ? []
      : [
          ...judge('clone', refuseBits(cloneNamespaces)),
          ...judge('unshare', refuseBits(cloneNamespaces | timeNamespace)),
          // Its flags are behind a pointer, which a filter can't follow. The C library falls back to clone.
          ...judge('clone3', [notImplemented]),
        ]),
    allow,
  ]);
}

function when(number: number, body: readonly Instruction[]): Instruction[] {
  return [skipUnlessEqual(number, body.length), ...body];
}

function refuseBits(bits: number): Instruction[] {
  return [load(argumentAt(0)), skipUnlessAnyBit(bits, 1), notPermitted, allow];
}

function allowEqual(values: readonly number[]): Instruction[] {
  return values.flatMap((value) => when(value, [allow]));
}

function judgeSocket(nested: boolean): Instruction[] {
  const netfilter = [load(argumentAt(2)), ...when(netfilterProtocol, [notPermitted]), allow];
  return [
    load(argumentAt(0)),
    ...(nested ? [] : when(netlinkFamily, netfilter)),
    ...allowEqual(socketFamilies),
    fail(constants.errno.EAFNOSUPPORT),
  ];
}

function toBytes(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8);
  program.forEach(([code, whenTrue, whenFalse, value], index) => {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(whenTrue, index * 8 + 2);
    bytes.writeUInt8(whenFalse, index * 8 + 3);
    bytes.writeUInt32LE(value >>> 0, index * 8 + 4);
  });
  return bytes;
}
