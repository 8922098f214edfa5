// The system calls that machines are refused or may make only with certain arguments, with their numbers. They are
// those that Docker's default profile refuses, and more that a tenant could use to attack the kernel. Unlike that
// profile, machines may call setns (sessions enter by it), sethostname, setdomainname, the NUMA calls, pidfd_getfd
// and process_madvise, for which their root has the capability, and unshare without a namespace.

import type { Architecture } from '#cloud/drivers/sandbox/native/instructions.ts';

type Numbers = Readonly<Record<Architecture, number | null>>;

/** Numbers above this belong to calls that are not judged yet. From 424 on, all architectures agree. */
export const newestKnown = 469;

/** Numbers on x86-64 and 64-bit ARM; null where a call does not exist. */
function at<X64, Arm64>(x64: X64, arm64: Arm64) {
  return { x64, arm64 };
}

function everywhere(number: number) {
  return at(number, number);
}

/** Refused to every machine. */
export const refused: Readonly<Record<string, Numbers>> = {
  // Kernel code and the host's life.
  init_module: at(175, 105),
  finit_module: at(313, 273),
  delete_module: at(176, 106),
  create_module: at(174, null),
  get_kernel_syms: at(177, null),
  query_module: at(178, null),
  kexec_load: at(246, 104),
  kexec_file_load: at(320, 294),
  reboot: at(169, 142),
  // The host's clock, swap, accounting, ports and log.
  settimeofday: at(164, 170),
  clock_settime: at(227, 112),
  clock_adjtime: at(305, 266),
  swapon: at(167, 224),
  swapoff: at(168, 225),
  acct: at(163, 89),
  quotactl: at(179, 60),
  quotactl_fd: everywhere(443),
  iopl: at(172, null),
  ioperm: at(173, null),
  syslog: at(103, 116),
  vhangup: at(153, 58),
  // Kernel keys are not namespaced.
  add_key: at(248, 217),
  request_key: at(249, 218),
  keyctl: at(250, 219),
  // Frequent sources of kernel vulnerabilities, or views of the whole host.
  bpf: at(321, 280),
  perf_event_open: at(298, 241),
  lookup_dcookie: at(212, 18),
  userfaultfd: at(323, 282),
  io_uring_setup: everywhere(425),
  io_uring_enter: everywhere(426),
  io_uring_register: everywhere(427),
  fanotify_init: at(300, 262),
  // Opens files by number, past the mounts that confine a machine.
  open_by_handle_at: at(304, 265),
  kcmp: at(312, 272),
  move_pages: at(279, 239),
  migrate_pages: at(256, 238),
  // Obsolete.
  _sysctl: at(156, null),
  sysfs: at(139, null),
  ustat: at(136, null),
  uselib: at(134, null),
  nfsservctl: at(180, 42),
};

/** Refused unless machines may create namespaces: with these a tenant builds containers of its own. */
export const nesting: Readonly<Record<string, Numbers>> = {
  mount: at(165, 40),
  umount2: at(166, 39),
  pivot_root: at(155, 41),
  open_tree: everywhere(428),
  move_mount: everywhere(429),
  fsopen: everywhere(430),
  fsconfig: everywhere(431),
  fsmount: everywhere(432),
  fspick: everywhere(433),
  mount_setattr: everywhere(442),
  open_tree_attr: everywhere(467),
};

/** Judged by their arguments in `filter.ts`. */
export const inspected = {
  clone: at(56, 220),
  clone3: everywhere(435),
  unshare: at(272, 97),
  socket: at(41, 198),
  personality: at(135, 92),
} as const;
