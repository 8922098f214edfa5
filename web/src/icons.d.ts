// Icons are imported file by file: the package's index would have the bundler read six thousand of them,
// which costs seconds and hundreds of megabytes on a first start.

declare module '@tabler/icons-react/dist/esm/icons/*.mjs' {
  import type { Icon } from '@tabler/icons-react';

  const icon: Icon;
  export default icon;
}
