// Machine code for system calls on x86-64 and 64-bit ARM. A program starts with the address of its argument
// count in the stack pointer; that address and the kept result stay in registers that calls preserve.

export type Architecture = 'x64' | 'arm64';

export type Argument =
  /** A number, or the address of bytes placed in the program. */
  | { readonly value: bigint }
  /** The program's own argument at this index; 0 is its name. */
  | { readonly argv: number }
  /** The list of the program's arguments from index 1, as `execve` takes it. */
  | 'command'
  | 'environment'
  /** The result of the last call made with `keep`. */
  | 'kept';

export interface SystemCall {
  readonly number: number;
  readonly arguments: readonly Argument[];
  readonly keep?: boolean;
}

export interface Instructions {
  /** Saves the stack pointer. */
  readonly start: Buffer;
  call(call: SystemCall): Buffer;
  exitIfFailed(status: number): Buffer;
  exit(status: number): Buffer;
}

export const instructions: Readonly<Record<Architecture, Instructions>> = {
  x64: createX64(),
  arm64: createArm64(),
};

/** Keeps the stack pointer in rbp and a result in rbx. */
function createX64(): Instructions {
  /** rdi, rsi, rdx, r10, r8, r9 */
  const parameters = [7, 6, 2, 10, 8, 9];
  const rax = 0;
  const syscall = [0x0f, 0x05];
  const setNumber = (register: number, value: bigint) => {
    const immediate = Buffer.alloc(8);
    immediate.writeBigInt64LE(BigInt.asIntN(64, value));
    return [0x48 | (register >> 3), 0xb8 | (register & 7), ...immediate];
  };
  /** `mov register, [rbp + offset]` (0x8b) or `lea` (0x8d). */
  const fromStack = (opcode: number, register: number, offset: number) => [
    ...[0x48 | ((register >> 3) << 2), opcode, 0x45 | ((register & 7) << 3), offset],
  ];
  const set = (register: number, argument: Argument): number[] => {
    // mov register, rbx
    if (argument === 'kept') return [0x48 | (register >> 3), 0x89, 0xd8 | (register & 7)];
    if (argument === 'command') return fromStack(0x8d, register, 16);
    if (argument === 'environment') {
      // mov rax, [rbp]; lea register, [rbp + rax * 8 + 16]
      const toRegister = [0x48 | ((register >> 3) << 2), 0x8d, 0x44 | ((register & 7) << 3)];
      return [...fromStack(0x8b, rax, 0), ...toRegister, 0xc5, 16];
    }
    if ('argv' in argument) return fromStack(0x8b, register, 8 * (argument.argv + 1));
    return setNumber(register, argument.value);
  };
  const exit = (status: number) => [...setNumber(7, BigInt(status)), ...setNumber(rax, 60n)];
  return {
    // mov rbp, rsp
    start: Buffer.from([0x48, 0x89, 0xe5]),
    call: ({ number, arguments: values, keep }) =>
      Buffer.from([
        ...values.flatMap((value, index) => set(parameters[index]!, value)),
        ...setNumber(rax, BigInt(number)),
        ...syscall,
        // mov rbx, rax
        ...(keep ? [0x48, 0x89, 0xc3] : []),
      ]),
    exitIfFailed: (status) => {
      const leave = [...exit(status), ...syscall];
      // test rax, rax; jns over
      return Buffer.from([0x48, 0x85, 0xc0, 0x79, leave.length, ...leave]);
    },
    exit: (status) => Buffer.from([...exit(status), ...syscall]),
  };
}

/** Keeps the stack pointer in x20 and a result in x19. */
function createArm64(): Instructions {
  const stack = 20;
  const kept = 19;
  const svc = 0xd4000001;
  const toBytes = (words: readonly number[]) => {
    const bytes = Buffer.alloc(words.length * 4);
    for (const [index, word] of words.entries()) bytes.writeUInt32LE(word >>> 0, index * 4);
    return bytes;
  };
  /** movz, then movk for each further 16 bits. */
  const setNumber = (register: number, value: bigint) =>
    [0, 1, 2, 3].map((part) => {
      const bits = Number((BigInt.asUintN(64, value) >> BigInt(16 * part)) & 0xffffn);
      return (part === 0 ? 0xd2800000 : 0xf2800000) | (part << 21) | (bits << 5) | register;
    });
  const load = (register: number, offset: number) =>
    0xf9400000 | ((offset / 8) << 10) | (stack << 5) | register;
  const add = (register: number, from: number, offset: number) =>
    0x91000000 | (offset << 10) | (from << 5) | register;
  const set = (register: number, argument: Argument): number[] => {
    // mov register, x19
    if (argument === 'kept') return [0xaa0003e0 | (kept << 16) | register];
    if (argument === 'command') return [add(register, stack, 16)];
    if (argument === 'environment') {
      // ldr x9, [x20]; add register, x20, x9, lsl #3; add register, register, #16
      const scaled = 0x8b000000 | (9 << 16) | (3 << 10) | (stack << 5) | register;
      return [load(9, 0), scaled, add(register, register, 16)];
    }
    if ('argv' in argument) return [load(register, 8 * (argument.argv + 1))];
    return setNumber(register, argument.value);
  };
  const exit = (status: number) => [...setNumber(0, BigInt(status)), ...setNumber(8, 93n), svc];
  return {
    // mov x20, sp
    start: toBytes([add(stack, 31, 0)]),
    call: ({ number, arguments: values, keep }) =>
      toBytes([
        ...values.flatMap((value, index) => set(index, value)),
        ...setNumber(8, BigInt(number)),
        svc,
        // mov x19, x0
        ...(keep ? [0xaa0003e0 | kept] : []),
      ]),
    exitIfFailed: (status) => {
      const leave = exit(status);
      // tbz x0, #63, over
      return toBytes([0xb6f80000 | ((leave.length + 1) << 5), ...leave]);
    },
    exit: (status) => toBytes(exit(status)),
  };
}
