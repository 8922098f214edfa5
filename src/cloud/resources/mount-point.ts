// Paths at which instances mount filesystems.

/** The default mount point of a filesystem. */
export const toMountPoint = (name: string) => `/lambda/nfs/${name}`;

/** Normalises a path: `/data//x/` and `/data/x` are the same. */
export const toPlainPath = (path: string) => path.replaceAll(/\/+/g, '/').replace(/\/$/, '');
