// The programs that every test may run: those of Debian's minimal system and git, by their package. A test names all others.

const packages: Readonly<Record<string, string>> = {
  bash: 'bash',
  bsdutils: 'logger renice script wall',
  coreutils:
    '[ arch b2sum base32 base64 basename basenc cat chcon chgrp chmod chown chroot cksum comm cp csplit cut date dd df ' +
    'dir dircolors dirname du echo env expand expr factor false fmt fold groups head hostid id install join link ln ' +
    'logname ls md5sum mkdir mkfifo mknod mktemp mv nice nl nohup nproc numfmt od paste pathchk pinky pr printenv printf ' +
    'ptx pwd readlink realpath rm rmdir runcon seq sha1sum sha224sum sha256sum sha384sum sha512sum shred shuf sleep sort ' +
    'split stat stdbuf stty sum sync tac tail tee test timeout touch tr true truncate tsort tty uname unexpand uniq ' +
    'unlink users vdir wc who whoami yes',
  dash: 'dash sh',
  debianutils: 'run-parts tempfile which',
  diffutils: 'cmp diff diff3 sdiff',
  e2fsprogs: 'badblocks chattr debugfs dumpe2fs e2fsck lsattr mke2fs mkfs.ext4 resize2fs tune2fs',
  findutils: 'find xargs',
  git: 'git',
  grep: 'egrep fgrep grep rgrep',
  gzip: 'gunzip gzip zcat',
  hostname: 'dnsdomainname domainname hostname',
  'libc-bin': 'getconf getent iconv ldconfig ldd locale localedef',
  login: 'login newgrp nologin su',
  mawk: 'awk mawk',
  mount: 'losetup mount swapoff swapon umount',
  openssl: 'openssl',
  passwd: 'chage chpasswd groupadd groupdel passwd useradd userdel usermod',
  'perl-base': 'perl',
  sed: 'sed',
  'sysvinit-utils': 'pidof',
  tar: 'tar',
  'util-linux':
    'blkid blockdev choom chrt dmesg fallocate findmnt flock fsfreeze fstrim getopt ionice ipcmk ipcrm ipcs linux32 ' +
    'linux64 lsblk lscpu lslocks lsns mcookie mkfs mkswap more mountpoint namei nsenter partx pivot_root prlimit rev ' +
    'runuser setarch setpriv setsid switch_root taskset unshare wipefs',
};

/** Node and npm are there as well, because `npm test` runs with them. */
export const basePrograms: readonly string[] = [
  ...Object.values(packages).flatMap((names) => names.split(' ')),
  ...['node', 'npm', 'npx'],
];
