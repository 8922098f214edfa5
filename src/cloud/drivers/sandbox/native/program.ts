// Writes small static executables that make a fixed list of system calls, for those that Node and util-linux
// lack. No compiler, interpreter or native addon is needed on the host.

import {
  type Architecture,
  type Argument,
  type Instructions,
  instructions,
  type SystemCall,
} from './instructions.ts';

/** Exit status of a program when one of its calls fails. */
const failureStatus = 125;

const loadAddress = 0x400000n;
const headerBytes = 64 + 56;
/** ELF machine numbers. */
const machines = { x64: 62, arm64: 183 } as const;

export interface Program {
  /** Stores bytes in the executable and returns their address. */
  place(bytes: Buffer): Argument & { readonly value: bigint };
  call(call: SystemCall): void;
  /** Returns the executable. It exits with `failureStatus` at the first call that fails, else with 0. */
  toExecutable(): Buffer;
}

export function createProgram(architecture: Architecture): Program {
  const target: Instructions = instructions[architecture];
  const data: Buffer[] = [];
  const code: Buffer[] = [target.start];
  let size = headerBytes;
  return {
    place(bytes) {
      const value = loadAddress + BigInt(size);
      const padded = Buffer.alloc(Math.ceil(bytes.length / 8) * 8);
      bytes.copy(padded);
      data.push(padded);
      size += padded.length;
      return { value };
    },
    call(call) {
      code.push(target.call(call), target.exitIfFailed(failureStatus));
    },
    toExecutable() {
      const body = Buffer.concat([...data, ...code, target.exit(0)]);
      const entry = loadAddress + BigInt(size);
      return Buffer.concat([toHeaders(machines[architecture], entry, body.length), body]);
    },
  };
}

/** One segment, readable and executable, that holds the whole file. */
function toHeaders(machine: number, entry: bigint, bodyBytes: number): Buffer {
  const header = Buffer.alloc(headerBytes);
  header.write('\x7fELF\x02\x01\x01', 'latin1');
  header.writeUInt16LE(2, 16);
  header.writeUInt16LE(machine, 18);
  header.writeUInt32LE(1, 20);
  header.writeBigUInt64LE(entry, 24);
  header.writeBigUInt64LE(64n, 32);
  for (const [index, value] of [64, 56, 1].entries()) {
    header.writeUInt16LE(value, 52 + 2 * index);
  }
  header.writeUInt32LE(1, 64);
  header.writeUInt32LE(5, 68);
  header.writeBigUInt64LE(loadAddress, 80);
  header.writeBigUInt64LE(loadAddress, 88);
  const fileBytes = BigInt(headerBytes + bodyBytes);
  header.writeBigUInt64LE(fileBytes, 96);
  header.writeBigUInt64LE(fileBytes, 104);
  header.writeBigUInt64LE(0x10000n, 112);
  return header;
}
